import { chmodSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { OutboxFiles } from '../../../src/outbox/sqlite/files/outbox-files.ts';
import { StateLock } from '../../../src/outbox/sqlite/files/state-lock.ts';
import type { Batch, FromWriter, WriterCall } from '../../../src/outbox/sqlite/messages.ts';
import { Writer } from '../../../src/outbox/sqlite/writer.ts';
import type { Append, AttemptOutcome } from '../../../src/outbox/store.ts';
import { draft } from '../../support/in-process-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

const HOUR_MS = 60 * 60 * 1000;
const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * HOUR_MS };

/** A writer as its thread runs it, on the test's own. */
function open(clock = new ManualClock(), state_dir = join(scratchFolder(), 'state')) {
  const replies: FromWriter[] = [];
  const lock = new StateLock(state_dir);
  const files = new OutboxFiles(state_dir, clock, lock);
  onTestFinished(() => {
    writer.stop();
    files.close();
    lock.release();
  });
  const writer = new Writer({ files, limits: LIMITS, clock, reply: (message) => replies.push(message) });
  let number = 0;
  const call = <Name extends WriterCall['name']>(
    name: Name,
    input: Extract<WriterCall, { name: Name }>['input'],
  ) => {
    writer.handle([{ kind: 'call', call: ++number, name, input } as WriterCall]);
    return replies.at(-1) as Extract<FromWriter, { kind: 'answer' }>;
  };
  call('adopt', { sandbox_id: 'sb-1', team_id: 't', secret: '' });
  return { writer, files, clock, state_dir, replies, call };
}

function batch(
  number: number,
  appends: Append[],
  outcomes: AttemptOutcome[] = [],
  wants_records = true,
): Batch {
  return { kind: 'batch', batch: number, appends, outcomes, wants_records };
}

const one = (payload = '{}') => ({ drafts: [draft(payload)] });

function delivered(id: number): AttemptOutcome {
  return {
    ...{ id, attempt: 1, started_at_ms: 0, duration_ms: 1, status: 200, error: null, response_body: null },
    decision: { state: 'delivered' },
  };
}

function lastDone(replies: FromWriter[]) {
  return replies.filter((message) => message.kind === 'done').at(-1) as Extract<FromWriter, { kind: 'done' }>;
}

/** Lets the database grow no further, as a full disk does; returns what makes room again. */
function fillDisk({ db }: OutboxFiles): () => void {
  const pages = db.pragma('page_count', { simple: true });
  db.pragma(`max_page_count = ${pages}`);
  return () => db.pragma('max_page_count = 1073741823');
}

const large = (): Append => one(`{"text":"${'x'.repeat(20_000)}"}`);

describe('a group commit', () => {
  it('writes all that waits in one transaction and answers every batch after it, in order', () => {
    const { writer, replies } = open();
    const before = replies.length;
    writer.handle([batch(1, [one(), one()]), batch(2, [one()]), batch(3, [one('{"a":1}'), one()])]);
    expect(replies.slice(before).map(({ kind }) => kind)).toEqual(['done']);
    const done = lastDone(replies);
    expect(done.trouble).toBeNull();
    expect(done.batches.map(({ batch: number }) => number)).toEqual([1, 2, 3]);
    const sequences = done.batches.flatMap(({ results }) =>
      results.flatMap((result) =>
        'records' in result ? result.records.map(({ sequence }) => sequence) : [],
      ),
    );
    expect(sequences).toEqual([1, 2, 3, 4, 5]);
    expect(done.added?.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5]);
    expect(done.counts).toMatchObject({ pending: 5 });
  });

  it('syncs once, whatever waits', () => {
    const { writer, files } = open();
    const pages = () => files.db.pragma('wal_checkpoint(PASSIVE)') as { log: number }[];
    writer.handle([batch(1, [one()])]);
    pages();
    // One transaction writes each page of the log once; fifty would write most pages fifty times.
    writer.handle(Array.from({ length: 50 }, (_, i) => batch(10 + i, [one()])));
    const [together] = pages();
    const alone = open();
    alone.writer.handle([batch(1, [one()])]);
    alone.files.db.pragma('wal_checkpoint(PASSIVE)');
    for (let i = 0; i < 50; i++) alone.writer.handle([batch(10 + i, [one()])]);
    const [separate] = alone.files.db.pragma('wal_checkpoint(PASSIVE)') as { log: number }[];
    expect((separate?.log ?? 0) / (together?.log ?? 1)).toBeGreaterThan(5);
  });

  it('hands over no records where nobody has room for them', () => {
    const { writer, replies } = open();
    writer.handle([batch(1, [one()], [], true), batch(2, [one()], [], false)]);
    expect(lastDone(replies).added).toBeNull();
  });

  it('applies outcomes before appends, and answers questions after both', () => {
    const { writer, replies, call } = open();
    writer.handle([batch(1, [one(), one()])]);
    writer.handle([
      { kind: 'call', call: 77, name: 'untried', input: { after_id: 0, limit: 10 } },
      batch(2, [one()], [delivered(1)]),
    ]);
    const answer = replies.at(-1) as Extract<FromWriter, { kind: 'answer' }>;
    expect(answer.call).toBe(77);
    expect((answer.output as { records: { id: number }[] }).records.map(({ id }) => id)).toEqual([2, 3]);
    expect(call('find', { event_id: 'evt_x' }).output).toBeNull();
  });
});

describe('the log', () => {
  const database_bytes = ({ db }: OutboxFiles) => statSync(db.name).size;
  const part = (number: number) => batch(number, Array.from({ length: 10 }, large));

  /** Commits so many parts of about 200 kB each. */
  function grow({ writer, files }: ReturnType<typeof open>, parts: number) {
    const before = database_bytes(files);
    for (let n = 1; n <= parts; n++) writer.handle([part(n)]);
    return database_bytes(files) - before;
  }

  it('is written back when nothing waits', () => {
    const opened = open();
    expect(grow(opened, 2)).toBe(0);
    expect(opened.writer.is_write_back_due).toBe(false);
    expect(grow(opened, 5)).toBe(0);
    expect(opened.writer.is_write_back_due).toBe(true);
    const before = database_bytes(opened.files);
    opened.writer.writeBack();
    expect(database_bytes(opened.files) - before).toBeGreaterThan(1_000_000);
    expect(opened.writer.is_write_back_due).toBe(false);
  });

  it('has begun anew before the next commit, which then has one sync', async () => {
    const opened = open();
    grow(opened, 6);
    opened.writer.stop();
    await opened.clock.advance(1);
    const salts = () => readFileSync(`${opened.files.db.name}-wal`).toString('hex', 16, 24);
    const before = salts();
    opened.writer.writeBack();
    const after = salts();
    expect(after).not.toBe(before);
    opened.writer.handle([batch(7, [one()])]);
    expect(salts()).toBe(after);
  });

  it('is left alone for a while where writing it back takes long', async () => {
    const clock = new ManualClock();
    const opened = open(clock);
    grow(opened, 6);
    const pragma = opened.files.db.pragma.bind(opened.files.db);
    let took_ms = 0;
    const monotonicMs = clock.monotonicMs.bind(clock);
    vi.spyOn(clock, 'monotonicMs').mockImplementation(() => monotonicMs() + took_ms);
    vi.spyOn(opened.files.db, 'pragma').mockImplementation((...asked) => {
      took_ms += 20;
      return pragma(...asked);
    });
    opened.writer.writeBack();
    grow(opened, 6);
    await clock.advance(490);
    expect(opened.writer.is_write_back_due).toBe(false);
    await clock.advance(10);
    expect(opened.writer.is_write_back_due).toBe(true);
  });

  it('is written back in the end whatever waits', () => {
    expect(grow(open(), 25)).toBeGreaterThan(3_000_000);
  });

  it('waits for the next commit where it is in doubt', () => {
    const opened = open();
    grow(opened, 6);
    const makeRoom = fillDisk(opened.files);
    opened.writer.handle([part(7)]);
    expect(lastDone(opened.replies).trouble).toMatch(/full/);
    makeRoom();
    expect(opened.writer.is_write_back_due).toBe(false);
    opened.writer.handle([batch(8, [one()])]);
    expect(lastDone(opened.replies).trouble).toBeNull();
    expect(opened.writer.is_write_back_due).toBe(true);
  });

  it('is not written back by a loop before all that has arrived is handled, nor after it has stopped', async () => {
    const opened = open();
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const before = database_bytes(opened.files);
    for (let n = 1; n <= 8; n++) opened.writer.handle([part(n)]);
    expect(database_bytes(opened.files)).toBe(before);
    opened.writer.stop();
    await turn();
    expect(database_bytes(opened.files)).toBe(before);
    opened.writer.handle([part(9)]);
    await turn();
    expect(database_bytes(opened.files)).toBeGreaterThan(before + 1_000_000);
  });
});

describe('a disk that refuses', () => {
  it('refuses every append of the commit and leaves nothing of it, and heals without a restart', () => {
    const { writer, replies, files } = open();
    writer.handle([batch(1, [one()])]);
    const counts = lastDone(replies).counts;
    const makeRoom = fillDisk(files);
    writer.handle([batch(2, [large(), one()]), batch(3, [one()])]);
    const refused = lastDone(replies);
    expect(refused.trouble).toMatch(/full/);
    expect(refused.batches.flatMap(({ results }) => results)).toEqual(
      Array(3).fill({ outcome: 'unavailable' }),
    );
    expect(refused.counts).toEqual(counts);
    expect(refused.added).toEqual([]);
    makeRoom();
    writer.handle([batch(4, [large()])]);
    const done = lastDone(replies);
    expect(done.trouble).toBeNull();
    expect(done.batches[0]?.results[0]).toMatchObject({ outcome: 'committed', records: [{ sequence: 2 }] });
  });

  it('keeps outcomes until it takes them, and says so for each batch then', () => {
    const { writer, replies, files } = open();
    writer.handle([batch(1, [one(), one()])]);
    const makeRoom = fillDisk(files);
    writer.handle([batch(2, [large()], [delivered(1)])]);
    expect(lastDone(replies).batches).toEqual([
      { batch: 2, results: [{ outcome: 'unavailable' }], is_recorded: false },
    ]);
    expect(writer.has_unrecorded).toBe(true);
    makeRoom();
    writer.handle([]);
    expect(lastDone(replies).batches).toEqual([{ batch: 2, results: [], is_recorded: true }]);
    expect(writer.has_unrecorded).toBe(false);
    expect(lastDone(replies).counts).toMatchObject({ pending: 1, delivered: 1 });
  });
});

describe('pruning', () => {
  it('removes delivered records after an hour or beyond 10 000, failed ones after 7 days, and gives space back', async () => {
    const { writer, replies, call, clock, files } = open();
    files.db.pragma('synchronous = OFF');
    const payload = `{"text":"${'x'.repeat(2_000)}"}`;
    const ids = Array.from({ length: 2_000 }, (_, i) => i + 1);
    writer.handle([
      batch(
        1,
        ids.map(() => one(payload)),
      ),
    ]);
    writer.handle([batch(2, [], ids.slice(1).map(delivered))]);
    writer.handle([batch(3, [], [{ ...delivered(1), status: 404, decision: { state: 'failed' } }])]);
    call('checkpoint', null);
    const size_bytes = () => statSync(files.db.name).size;
    const full_bytes = size_bytes();
    const prune = () => {
      for (;;) {
        const { output, error } = call('prune', null);
        expect(error).toBeNull();
        if (!(output as { more: boolean }).more) return;
      }
    };
    prune();
    expect(lastDone(replies).counts.delivered).toBe(1_999);
    await clock.advance(HOUR_MS);
    prune();
    call('checkpoint', null);
    expect(size_bytes()).toBeLessThan(full_bytes / 10);
    const { counts } = call('prune', null);
    expect(counts).toMatchObject({ delivered: 0, failed: 1 });
    await clock.advance(7 * 24 * HOUR_MS);
    prune();
    expect(call('prune', null).counts).toMatchObject({ failed: 0 });
  });
});

describe('free space', () => {
  it('is left to the next records while those come, and given back soon after', async () => {
    const { writer, call, clock, files } = open();
    files.db.pragma('synchronous = OFF');
    const ids = Array.from({ length: 500 }, (_, i) => i + 1);
    const large = `{"text":"${'x'.repeat(2_000)}"}`;
    const appends = ids.map(() => one(large));
    writer.handle([batch(1, appends)]);
    writer.handle([batch(2, [], ids.map(delivered))]);
    await clock.advance(HOUR_MS);
    writer.handle([batch(3, [one()])]);
    const free_pages = () => files.db.pragma('freelist_count', { simple: true });
    expect(call('prune', null).output).toEqual({ more: false });
    expect(free_pages()).toBeGreaterThan(100);
    expect(call('isPruneDue', null).output).toBe(false);
    await clock.advance(5_000);
    expect(call('isPruneDue', null).output).toBe(true);
    expect(call('prune', null).output).toEqual({ more: true });
    expect(call('prune', null).output).toEqual({ more: false });
    expect(free_pages()).toBe(0);
  });
});

describe('replaying a state', () => {
  it('makes the oldest of its records pending, as many as asked for, each once', () => {
    const { writer, files, call } = open();
    files.db.pragma('synchronous = OFF');
    const ids = Array.from({ length: 1_200 }, (_, i) => i + 1);
    writer.handle([
      batch(
        1,
        ids.map(() => one()),
      ),
    ]);
    writer.handle([
      batch(
        2,
        [],
        ids.map((id) => ({ ...delivered(id), status: 404, decision: { state: 'failed' } })),
      ),
    ]);
    expect(call('replaySome', { state: 'failed', limit: 1_000 }).output).toBe(1_000);
    const answer = call('replaySome', { state: 'failed', limit: 1_000 });
    expect(answer.output).toBe(200);
    expect(answer.counts).toMatchObject({ failed: 0, pending: 1_200 });
    expect(call('replaySome', { state: 'failed', limit: 1_000 }).output).toBe(0);
  });
});

describe('the files', () => {
  it('are for their owner alone, whatever the umask', () => {
    const umask = process.umask(0);
    try {
      const { state_dir } = open();
      expect(statSync(state_dir).mode & 0o777).toBe(0o700);
      for (const name of ['outbox.db', 'outbox.db-wal', 'lock', 'high-water']) {
        expect(statSync(join(state_dir, name)).mode & 0o777, name).toBe(0o600);
      }
    } finally {
      process.umask(umask);
    }
  });

  it('are refused where others can write their folder', () => {
    const state_dir = scratchFolder();
    chmodSync(state_dir, 0o777);
    expect(() => open(new ManualClock(), state_dir)).toThrow(/can be written by others/);
  });
});
