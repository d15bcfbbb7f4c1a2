import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { OutboxFiles } from '../../../src/outbox/sqlite/files/outbox-files.ts';
import { StateLock } from '../../../src/outbox/sqlite/files/state-lock.ts';
import type { Batch, FromWriter, WriterCall } from '../../../src/outbox/sqlite/messages.ts';
import { Writer } from '../../../src/outbox/sqlite/writer.ts';
import type { Append, AttemptOutcome } from '../../../src/outbox/store.ts';
import { draft } from '../in-process-store.ts';
import { ManualClock } from '../manual-clock.ts';
import { scratchFolder } from '../scratch.ts';

const LIMITS = { max_bytes: 2 ** 30, max_records: 100_000, window_ms: 24 * 60 * 60 * 1000 };

/** A writer as its thread runs it, on the test's own. */
export function openWriterHere(clock = new ManualClock(), state_dir = join(scratchFolder(), 'state')) {
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

/** A batch as a client sends it. */
export function batch(
  number: number,
  appends: Append[],
  outcomes: AttemptOutcome[] = [],
  wants_records = true,
): Batch {
  return { kind: 'batch', batch: number, appends, outcomes, wants_records };
}

/** An append of one event. */
export const one = (payload = '{}'): Append => ({ drafts: [draft(payload)] });

/** An append of one event of 20 kB. */
export const large = (): Append => one(`{"text":"${'x'.repeat(20_000)}"}`);

/** The outcome of a first attempt that was answered 200. */
export function delivered(id: number): AttemptOutcome {
  return {
    ...{
      id,
      attempt: 1,
      started_at_ms: 0,
      duration_ms: 1,
      status: 200,
      error: null,
      error_detail: null,
      response_body: null,
    },
    decision: { state: 'delivered' },
  };
}

/** The last answer to a commit. */
export function lastDone(replies: FromWriter[]) {
  return replies.filter((message) => message.kind === 'done').at(-1) as Extract<FromWriter, { kind: 'done' }>;
}

/** Lets the database grow no further, as a full disk does; returns what makes room again. */
export function fillDisk({ db }: OutboxFiles): () => void {
  const pages = db.pragma('page_count', { simple: true });
  db.pragma(`max_page_count = ${pages}`);
  return () => db.pragma('max_page_count = 1073741823');
}
