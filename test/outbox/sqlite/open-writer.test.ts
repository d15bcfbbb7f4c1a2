import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { StartError } from '../../../src/contract/errors.ts';
import { StateLock } from '../../../src/outbox/sqlite/files/state-lock.ts';
import type { FromWriter, WriterState } from '../../../src/outbox/sqlite/messages.ts';
import { openWriter } from '../../../src/outbox/sqlite/open-writer.ts';
import { scratchFolder } from '../../support/scratch.ts';

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

it('opens a new outbox and says what it holds', () => {
  const { writer, replies } = open(join(scratchFolder(), 'state'));
  expect(writer).not.toBeNull();
  expect(replies).toMatchObject([{ kind: 'opened', sandbox_id: null, counts: { pending: 0, bytes: 0 } }]);
});

it('continues the clock and the owner of the writer before it', () => {
  const owner = { sandbox_id: 'sb-9', team_id: 't', secret: '' };
  const { replies } = open(join(scratchFolder(), 'state'), undefined, { owner, offset_ms: 12_345 });
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
  const previous = { owner: null, offset_ms: 0 };
  const { replies } = open(join(scratchFolder(), 'state'), failing('EACCES'), previous);
  expect(replies).toMatchObject([{ kind: 'refused', may_pass: true }]);
});

it('is refused for good, in the words of the reason, where the directory cannot be used', () => {
  const state_dir = join(scratchFolder(), 'state');
  const taken = () => {
    throw new StartError('others can write here');
  };
  for (const previous of [null, { owner: null, offset_ms: 0 }]) {
    const { writer, replies } = open(state_dir, taken, previous);
    expect(writer).toBeNull();
    expect(replies).toEqual([{ kind: 'refused', message: 'others can write here', may_pass: false }]);
  }
});
