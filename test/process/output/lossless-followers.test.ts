import { createHash } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { LOSSLESS_STALL_MS, OUTPUT_PENDING_BYTES } from '../../../src/contract/defaults.ts';
import type { OutputStream } from '../../../src/contract/words.ts';
import { SLAB_BYTES } from '../../../src/process/output/buffer-pool.ts';
import type { OutputItem, OutputItems, OutputOptions } from '../../../src/process/output/output-reader.ts';
import type { Supervisor } from '../../../src/process/supervisor.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { outputOf, program, start } from '../../support/process/harness.ts';

const MIB = 1024 * 1024;
const TOTAL = 40 * MIB;
/** What others may have beyond the slowest follower: what is read, and one read more. */
const AHEAD_MAX = OUTPUT_PENDING_BYTES + SLAB_BYTES;
/** For what is awaited again for each piece of output. */
const OFTEN = { interval: 5 };
const TWO_STREAMS = { streams: ['stdout', 'stderr'], follow: true, lossless: true } as const;

/** The hash of what flood.mjs writes. */
function floodHash(total = TOTAL): string {
  const block = Buffer.alloc(65_536, 'abcdefghijklmno\n');
  const hash = createHash('sha256');
  for (let number = 0; number < total / 65_536; number++) {
    block.write(number.toString(16).padStart(15, '0'));
    hash.update(block);
  }
  return hash.digest('hex');
}

/** Takes every item; `pace` is called with the bytes taken so far before the next is taken. */
async function taken(items: OutputItems, pace: (bytes: number) => unknown = () => {}) {
  const hash = createHash('sha256');
  const kinds = new Set<OutputItem['type']>();
  let bytes = 0;
  for await (const item of items) {
    kinds.add(item.type);
    if (item.type !== 'output') continue;
    expect(item.offset).toBe(bytes);
    hash.update(item.data);
    bytes += item.data.length;
    await pace(bytes);
  }
  return { bytes, hash: hash.digest('hex'), kinds: [...kinds] };
}

/** Starts a flood that nobody has read from yet. */
async function flooded(supervisor: Supervisor, options: Partial<OutputOptions> = {}) {
  const request = { command: program('flood.mjs', String(TOTAL)), process_id: 'flood' };
  await supervisor.spawn(request, { lossless: true });
  return supervisor.output('flood', { ...TWO_STREAMS, ...options });
}

/** How much of a stream can be read, once that is as much as may wait for a lossless follower. */
function heldEnd(
  supervisor: Supervisor,
  process_id: string,
  stream: OutputStream = 'stdout',
): Promise<number> {
  return eventually(async () => {
    const query = { streams: [stream], start: { tail_bytes: 0 } };
    const { start: position } = await supervisor.output(process_id, query);
    expect(position[stream]).toBeGreaterThanOrEqual(OUTPUT_PENDING_BYTES);
    return position[stream];
  });
}

test('a slow follower and a fast one get every byte, and the process is never far ahead of the slow one', async () => {
  const { supervisor } = await start();
  const slow = await flooded(supervisor);
  const fast = await supervisor.output('flood', TWO_STREAMS);
  const bytes = { slow: 0, fast: 0 };
  const whole = { bytes: TOTAL, hash: floodHash(), kinds: ['output', 'exit'] };
  const read = await Promise.all([
    taken(slow, async (so_far) => {
      bytes.slow = so_far;
      // Now and then it waits until the other one has come near to what it may have.
      if (so_far % MIB >= 128 * 1024) return;
      const due = Math.min(TOTAL, so_far + 64 * 1024);
      await eventually(() => expect(bytes.fast).toBeGreaterThanOrEqual(due), OFTEN);
    }),
    taken(fast, (so_far) => {
      bytes.fast = so_far;
      expect(bytes.fast - bytes.slow).toBeLessThanOrEqual(AHEAD_MAX);
    }),
  ]);
  expect(read).toEqual([whole, whole]);
});

test('a follower that leaves holds nothing any more', async () => {
  const { supervisor } = await start();
  const gone = new AbortController();
  const items = await flooded(supervisor, { signal: gone.signal });
  await items.next();
  expect(await heldEnd(supervisor, 'flood')).toBeLessThanOrEqual(AHEAD_MAX + 64 * 1024);
  gone.abort();
  await supervisor.finished('flood');
  expect((await supervisor.get('flood')).exit_code).toBe(0);
  expect((await items.next()).done).toBe(true);
});

test('one that takes nothing for a minute is dropped, and one that never came is waited for no longer', async () => {
  for (const has_come of [true, false]) {
    const clock = new ManualClock();
    const { supervisor } = await start({}, clock);
    let drops = 0;
    let items: OutputItems | null = null;
    if (has_come) {
      items = await flooded(supervisor, { onDropped: () => drops++ });
      await items.next();
    } else {
      const command = program('flood.mjs', String(TOTAL));
      await supervisor.spawn({ command, process_id: 'flood' }, { lossless: true });
    }
    await heldEnd(supervisor, 'flood');
    await clock.advance(LOSSLESS_STALL_MS - 5_000);
    expect(await heldEnd(supervisor, 'flood')).toBeLessThanOrEqual(AHEAD_MAX + 64 * 1024);
    await clock.advance(10_000);
    await items?.next(); // it goes on reading like any other
    await supervisor.finished('flood');
    expect([(await supervisor.get('flood')).exit_code, drops]).toEqual([0, has_come ? 1 : 0]);
  }
});

test('a stream that the first follower does not take waits 5 s for one of its own', async () => {
  for (const has_come of [true, false]) {
    const clock = new ManualClock();
    const { supervisor } = await start({}, clock);
    const shell = 'seq 1 1000000 >&2; seq 1 1000000';
    await supervisor.spawn({ shell, process_id: 'p' }, { lossless: true });
    const stdout = await supervisor.output('p', { ...TWO_STREAMS, streams: ['stdout'] });
    const reading = taken(stdout);
    await heldEnd(supervisor, 'p', 'stderr');
    await clock.advance(4_000);
    expect(await heldEnd(supervisor, 'p', 'stderr')).toBeLessThanOrEqual(AHEAD_MAX + 64 * 1024);
    const stderr = has_come
      ? taken(await supervisor.output('p', { ...TWO_STREAMS, streams: ['stderr'] }))
      : clock.advance(1_000);
    expect((await reading).bytes).toBe(6_888_896);
    if (has_come) expect((await stderr)?.bytes).toBe(6_888_896);
    await supervisor.finished('p');
  }
});

test('one that waits for output is not dropped, however long there is none', async () => {
  const clock = new ManualClock();
  const { supervisor } = await start({}, clock);
  await supervisor.spawn({ shell: 'printf a; read x; seq 1 1000000', stdin: 'pipe', process_id: 'p' });
  const items = await supervisor.output('p', {
    ...TWO_STREAMS,
    onDropped: () => expect.unreachable(),
  });
  const first = Promise.withResolvers<void>();
  const reading = taken(items, () => first.resolve());
  await first.promise;
  await clock.advance(10 * LOSSLESS_STALL_MS);
  await supervisor.writeStdin('p', { data: [Buffer.from('\n')] });
  expect(await reading).toMatchObject({ bytes: 1 + 6_888_896, kinds: ['output', 'exit'] });
});

test('the end of a process is not held up, and what it wrote until then is all there', async () => {
  const { supervisor } = await start({ grace_ms: 60_000 });
  const shell = 'trap "seq 1 500000; exit 3" TERM; echo up; while :; do echo; done';
  await supervisor.spawn({ shell, process_id: 'p' }, { lossless: true });
  const items = await supervisor.output('p', TWO_STREAMS);
  const first = await items.next();
  const began = first.value.data.toString();
  await heldEnd(supervisor, 'p');
  expect(await supervisor.remove('p')).toMatchObject({ exit_code: 3, signal: null });
  let text = began;
  for await (const item of items) if (item.type === 'output') text += item.data;
  expect(text).toMatch(/^up\n+1\n2\n3\n/);
  expect(text.length - text.indexOf('1')).toBe(3_388_895);
});

test('a terminal is held up like a pipe, and its last bytes come before its end', async () => {
  const { supervisor } = await start();
  const pty = { cols: 80, rows: 24 };
  await supervisor.spawn({ shell: 'seq 1 400000', pty, process_id: 'p' }, { lossless: true });
  expect(await heldEnd(supervisor, 'p')).toBeLessThanOrEqual(AHEAD_MAX + 64 * 1024);
  let last = 0;
  const read = await taken(await supervisor.output('p', TWO_STREAMS), async (bytes) => {
    // Now and then it waits until there is as much to read as there may be, or the program has ended.
    if (bytes - last < 512 * 1024) return;
    last = bytes;
    const query = { streams: ['stdout'], start: { tail_bytes: 0 } } as const;
    await eventually(async () => {
      const { start: position } = await supervisor.output('p', query);
      const has_ended = (await supervisor.get('p')).state === 'exited';
      expect(has_ended || position.stdout >= bytes + 64 * 1024).toBe(true);
    }, OFTEN);
  });
  // A terminal ends lines with CR LF.
  expect(read).toMatchObject({ bytes: 2_688_895 + 400_000, kinds: ['output', 'exit'] });
});

test('nothing is missing after a pause in the middle, or of a stream that is not the slow one', async () => {
  const { supervisor } = await start();
  const shell = 'seq 1 1000000 >&2 & seq 1 1000000; wait';
  await supervisor.spawn({ shell, process_id: 'p' }, { lossless: true });
  const totals = { stdout: 0, stderr: 0 };
  let is_paused = false;
  for await (const item of await supervisor.output('p', TWO_STREAMS)) {
    if (item.type !== 'output') continue;
    expect(item.offset).toBe(totals[item.stream]);
    totals[item.stream] += item.data.length;
    if (is_paused || totals.stdout < MIB) continue;
    is_paused = true;
    await supervisor.pause();
    await supervisor.resume();
  }
  expect([is_paused, totals]).toEqual([true, { stdout: 6_888_896, stderr: 6_888_896 }]);
});

test('bytes that the disk refuses reach a lossless follower from memory', async () => {
  const { supervisor, directory } = await start();
  const items = await flooded(supervisor);
  let is_away = false;
  const read = await taken(items, async (bytes) => {
    if (bytes < 6 * MIB || is_away) return;
    is_away = true;
    await rename(`${directory}/flood`, `${directory}/away`);
  });
  expect(read).toEqual({ bytes: TOTAL, hash: floodHash(), kinds: ['output', 'exit'] });
  // The disk itself has a gap.
  expect((await outputOf(supervisor, 'flood')).stdout.length).toBeLessThan(8 * MIB);
});
