import { createHash } from 'node:crypto';
import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { OUTPUT_SEGMENT_BYTES } from '../../../src/contract/defaults.ts';
import { ChangeSignal } from '../../../src/process/change-signal.ts';
import { OutputLog } from '../../../src/process/output/output-log.ts';
import { type OutputItem, outputTail } from '../../../src/process/output/output-reader.ts';
import { program, start } from '../../support/process/harness.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MIB = 1024 * 1024;

async function collect(items: AsyncIterable<OutputItem>): Promise<OutputItem[]> {
  const all: OutputItem[] = [];
  // Its bytes are valid until the next item.
  for await (const item of items)
    all.push(item.type === 'output' ? { ...item, data: Buffer.from(item.data) } : item);
  return all;
}

test('a follower gets every byte and the end, though it came late and left often', async () => {
  const { supervisor } = await start();
  const total = 6 * MIB;
  const { process } = await supervisor.spawn({ command: program('flood.mjs', String(total)) });
  const hash = createHash('sha256');
  let offset = 0;
  let drops = 0;
  for (let has_ended = false; !has_ended; drops++) {
    const items = await supervisor.output(process.process_id, {
      streams: ['stdout'],
      start: { offsets: { stdout: offset } },
      follow: true,
      whole_characters: true,
    });
    for await (const item of items) {
      if (item.type === 'exit') has_ended = true;
      if (item.type !== 'output') break;
      expect(item.offset).toBe(offset);
      hash.update(item.data);
      offset += item.data.length;
      if (drops < 100 && Math.random() < 0.7) break;
    }
  }
  expect(offset).toBe(total);
  expect(drops).toBeGreaterThan(20);
  const block = Buffer.alloc(65_536, 'abcdefghijklmno\n');
  const expected = createHash('sha256');
  for (let number = 0; number < total / 65_536; number++) {
    block.write(number.toString(16).padStart(15, '0'));
    expected.update(block);
  }
  expect(hash.digest('hex')).toBe(expected.digest('hex'));
});

test('a follower that does not read slows nobody; it is told what it has missed', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: program('flood.mjs', String(40 * MIB)) });
  const slow = await supervisor.output(process.process_id, { streams: ['stdout'], follow: true });
  const first = await slow.next();
  expect(first.value).toMatchObject({ type: 'output', offset: 0 });
  await supervisor.finished(process.process_id);
  const rest = await collect(slow);
  const gone = rest[0];
  expect(gone).toMatchObject({ type: 'gone', stream: 'stdout' });
  expect(rest.at(-1)).toMatchObject({
    type: 'exit',
    process: { exit_code: 0 },
    position: { stdout: 40 * MIB },
  });
});

test('reading starts at an offset, so many bytes or so many lines before the end', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'printf "one\\ntwo\\nthree\\n"; printf e >&2' });
  await supervisor.finished(process.process_id);
  const read = async (query: object) => {
    const items = await collect(
      await supervisor.output(process.process_id, { streams: ['stdout'], ...query }),
    );
    return items.flatMap((item) => (item.type === 'output' ? [`${item.offset}:${item.data}`] : [item.type]));
  };
  expect(await read({})).toEqual(['0:one\ntwo\nthree\n', 'exit']);
  expect(await read({ start: { offsets: { stdout: 4 } } })).toEqual(['4:two\nthree\n', 'exit']);
  expect(await read({ start: { tail_bytes: 3 } })).toEqual(['11:ee\n', 'exit']);
  expect(await read({ start: { tail_lines: 2 } })).toEqual(['4:two\nthree\n', 'exit']);
  expect(await read({ start: { tail_lines: 9 } })).toEqual(['0:one\ntwo\nthree\n', 'exit']);
  expect(await read({ start: { tail_lines: 0 } })).toEqual(['exit']);
  expect(await read({ streams: ['stdout', 'stderr'] })).toEqual(['0:one\ntwo\nthree\n', '0:e', 'exit']);
  await expect(read({ start: { offsets: { stdout: 15 } } })).rejects.toMatchObject({
    code: 'invalid_request',
  });
});

test('an offset that is no longer kept is gone', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ command: program('flood.mjs', String(20 * MIB)) });
  await supervisor.finished(process.process_id);
  const query = { streams: ['stdout'], start: { offsets: { stdout: 0 } } } as const;
  await expect(supervisor.output(process.process_id, query)).rejects.toMatchObject({
    code: 'gone',
    details: { first_offset: expect.any(Number) },
  });
});

test('characters are not cut while more may come', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({
    shell: 'printf "a\\303"; read x; printf "\\244b"',
    stdin: 'pipe',
  });
  const texts: string[] = [];
  const query = { streams: ['stdout'], follow: true, whole_characters: true } as const;
  for await (const item of await supervisor.output(process.process_id, query)) {
    if (item.type !== 'output') continue;
    texts.push(item.data.toString());
    if (texts.length === 1) await supervisor.writeStdin(process.process_id, { data: [Buffer.from('\n')] });
  }
  expect(texts).toEqual(['a', 'äb']);
});

test('a character whose bytes are in two files is read as one', async () => {
  const { supervisor } = await start();
  const length = OUTPUT_SEGMENT_BYTES - 1;
  const { process } = await supervisor.spawn({
    shell: `head -c ${length} /dev/zero; printf 'é!'; exec cat`,
    stdin: 'pipe',
  });
  let text = '';
  const query = { streams: ['stdout'], follow: true, whole_characters: true } as const;
  for await (const item of await supervisor.output(process.process_id, query)) {
    if (item.type !== 'output') continue;
    text += item.data.toString();
    if (text.endsWith('!')) await supervisor.writeStdin(process.process_id, { data: [], end: true });
  }
  expect(text === `${'\0'.repeat(length)}é!`).toBe(true);
});

async function logsOf(out: string | Buffer, err: string | Buffer) {
  const folder = scratchFolder();
  const changes = new ChangeSignal();
  const stdout = OutputLog.create(folder, 'stdout', changes);
  const stderr = OutputLog.create(folder, 'stderr', changes);
  for (const [log, text] of [[stdout, out] as const, [stderr, err] as const]) {
    for (let at = 0; at < text.length; at += MIB) log.append(Buffer.from(text.slice(at, at + MIB)));
    await log.flush();
  }
  return { folder, logs: { stdout, stderr } };
}

test('the tail of each stream says whether there was more before it', async () => {
  const { logs } = await logsOf('0123456789', 'abc');
  const tail = await outputTail(logs, 4);
  expect([String(tail.stdout), String(tail.stderr)]).toEqual(['6789', 'abc']);
  expect([tail.stdout_truncated, tail.stderr_truncated]).toEqual([true, false]);
  const all = await outputTail(logs, 10);
  expect([String(all.stdout), all.stdout_truncated]).toEqual(['0123456789', false]);
});

test('a tail across several files is one', async () => {
  const bytes = Buffer.alloc(12 * MIB, 'abcdefg');
  const { logs } = await logsOf(bytes, '');
  const { stdout, stderr, stderr_truncated } = await outputTail(logs, 6 * MIB);
  expect(stdout.equals(bytes.subarray(-6 * MIB))).toBe(true);
  expect([stderr.length, stderr_truncated]).toEqual([0, false]);
});

test('a tail of files that somebody has cut short is what can still be read', async () => {
  const { folder, logs } = await logsOf(Buffer.alloc(8 * 1024, '0123456789'), 'abc');
  await truncate(join(folder, 'stdout'), 0);
  const { stdout, stderr } = await outputTail(logs, 4 * 1024);
  expect([stdout.length, String(stderr)]).toEqual([0, 'abc']);
});
