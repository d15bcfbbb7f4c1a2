import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { StartError } from '../../../src/contract/errors.ts';
import { StateLock } from '../../../src/outbox/sqlite/files/state-lock.ts';
import type { FromWriter, WriterState } from '../../../src/outbox/sqlite/messages.ts';
import { openWriter } from '../../../src/outbox/sqlite/writer.ts';
import {
  batch,
  delivered,
  fillDisk,
  large,
  lastDone,
  one,
  openWriterHere,
} from '../../support/outbox/writer.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('a group commit', () => {
  it('writes all that waits in one transaction and answers every batch after it, in order', () => {
    const { writer, replies } = openWriterHere();
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
    const { writer, files } = openWriterHere();
    const pages = () => files.db.pragma('wal_checkpoint(PASSIVE)') as { log: number }[];
    writer.handle([batch(1, [one()])]);
    pages();
    // One transaction writes each page of the log once; fifty would write most pages fifty times.
    writer.handle(Array.from({ length: 50 }, (_, i) => batch(10 + i, [one()])));
    const [together] = pages();
    const alone = openWriterHere();
    alone.writer.handle([batch(1, [one()])]);
    alone.files.db.pragma('wal_checkpoint(PASSIVE)');
    for (let i = 0; i < 50; i++) alone.writer.handle([batch(10 + i, [one()])]);
    const [separate] = alone.files.db.pragma('wal_checkpoint(PASSIVE)') as { log: number }[];
    expect((separate?.log ?? 0) / (together?.log ?? 1)).toBeGreaterThan(5);
  });

  it('hands over no records where nobody has room for them', () => {
    const { writer, replies } = openWriterHere();
    writer.handle([batch(1, [one()], [], true), batch(2, [one()], [], false)]);
    expect(lastDone(replies).added).toBeNull();
  });

  it('applies outcomes before appends, and answers questions after both', () => {
    const { writer, replies, call } = openWriterHere();
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

describe('a disk that refuses', () => {
  it('refuses every append of the commit and leaves nothing of it, and heals without a restart', () => {
    const { writer, replies, files } = openWriterHere();
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
    const { writer, replies, files } = openWriterHere();
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

describe('replaying a state', () => {
  it('makes the oldest of its records pending, as many as asked for, each once', () => {
    const { writer, files, call } = openWriterHere();
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

const LIMITS = { max_bytes: 2 ** 30, max_records: 1_000, window_ms: 60_000 };

/** Opens a writer, with the lock that a test gives or takes; closes it when the test ends. */
function open(state_dir: string, lock = () => new StateLock(state_dir), previous: WriterState | null = null) {
  const replies: FromWriter[] = [];
  let taken: StateLock | null = null;
  const takeLock = () => {
    taken = lock();
    return taken;
  };
  const reply = (message: FromWriter) => replies.push(message);
  const writer = openWriter({ state_dir, limits: LIMITS }, reply, previous, takeLock, true);
  onTestFinished(() => {
    writer?.handle([{ kind: 'call', call: 1, name: 'close', input: null }]);
    taken?.release();
  });
  return { writer, replies };
}

function failing(code: string): () => never {
  return () => {
    throw Object.assign(new Error('the disk says no'), { code });
  };
}

describe('opening the outbox', () => {
  it('opens a new outbox and says what it holds', () => {
    const { writer, replies } = open(join(scratchFolder(), 'state'));
    expect(writer).not.toBeNull();
    expect(replies).toMatchObject([{ kind: 'opened', sandbox_id: null, counts: { pending: 0, bytes: 0 } }]);
  });

  it('continues the clock and the owner of the writer before it', () => {
    const owner = { sandbox_id: 'sb-9', team_id: 't', secret: '' };
    const { replies } = open(join(scratchFolder(), 'state'), undefined, {
      owner,
      offset_ms: 12_345,
      left: null,
    });
    expect(replies).toMatchObject([{ kind: 'opened', sandbox_id: 'sb-9', offset_ms: 12_345 }]);
  });

  it.each([
    ['EMFILE', true],
    ['SQLITE_FULL', true],
    ['SQLITE_IOERR_FSYNC', true],
    ['ENOSPC', true],
    ['EACCES', false],
    ['SQLITE_CANTOPEN', false],
  ])('is refused at a start with the directory and the reason: %s may pass: %s', (code, may_pass) => {
    const state_dir = join(scratchFolder(), 'state');
    const { writer, replies } = open(state_dir, failing(code));
    expect(writer).toBeNull();
    expect(replies).toEqual([
      { kind: 'refused', message: `state directory ${state_dir}: the disk says no`, may_pass },
    ]);
  });

  it('takes any trouble of the disk for one that may pass where the outbox was open a moment ago', () => {
    const previous = { owner: null, offset_ms: 0, left: null };
    const { replies } = open(join(scratchFolder(), 'state'), failing('EACCES'), previous);
    expect(replies).toMatchObject([{ kind: 'refused', may_pass: true }]);
  });

  it('is refused for good, in the words of the reason, where the directory cannot be used', () => {
    const state_dir = join(scratchFolder(), 'state');
    const taken = () => {
      throw new StartError('others can write here');
    };
    for (const previous of [null, { owner: null, offset_ms: 0, left: null }]) {
      const { writer, replies } = open(state_dir, taken, previous);
      expect(writer).toBeNull();
      expect(replies).toEqual([{ kind: 'refused', message: 'others can write here', may_pass: false }]);
    }
  });
});
