import type { DeliveryDetail, OutboxCounts } from '../../contract/deliveries.ts';
import type { FinalState, UndeliveredState } from '../../contract/words.ts';
import type {
  Adoption,
  Append,
  AppendResult,
  AttemptOutcome,
  DeliveryFilter,
  Discarded,
  LoadedRecord,
  StreamRecord,
} from '../store.ts';
import type { LeftFiles } from './files/left-outbox.ts';
import type { FileIdentity } from './files/state-lock.ts';
import type { ListPart } from './rows/inspection.ts';
import type { LifecycleRow } from './rows/lifecycle-records.ts';
import type { OutboxLimits, Ownership } from './rows/outbox-state.ts';

/** What the writer thread is started with. It holds no secret: that comes with `adopt`. */
export interface WriterSettings {
  state_dir: string;
  limits: OutboxLimits;
}

/** The appends and outcomes of one turn of the event loop; they share a commit with everything else that is waiting. */
export interface Batch {
  kind: 'batch';
  batch: number;
  appends: Append[];
  outcomes: AttemptOutcome[];
  /** Whether the dispatcher or a follower wants the records that this adds. */
  wants_records: boolean;
}

/** The calls that are answered one by one, with their inputs and outputs. */
export interface Calls {
  adopt: { in: Ownership; out: Adoption };
  untried: { in: { after_id: number; limit: number }; out: { records: LoadedRecord[]; more: boolean } };
  due: { in: { limit: number }; out: { records: LoadedRecord[]; next_due_ms: number | null } };
  overdue: { in: { limit: number }; out: { records: LoadedRecord[]; next_deadline_ms: number | null } };
  probeCandidate: { in: { in_flight: number[] }; out: LoadedRecord | null };
  list: { in: DeliveryFilter; out: ListPart };
  find: { in: { event_id: string }; out: DeliveryDetail | null };
  replay: { in: { event_id: string }; out: boolean };
  replaySome: { in: { state: FinalState; limit: number }; out: number };
  discard: { in: { event_id: string }; out: Discarded };
  discardSome: { in: { state: UndeliveredState; limit: number }; out: number };
  after: { in: { sequence: number; limit: number }; out: StreamRecord[] };
  lifecycle: { in: { sequence: number; limit: number }; out: LifecycleRow[] };
  lastSequence: { in: null; out: number };
  oldestPending: { in: null; out: number | null };
  tree: { in: { after_id: number; limit: number }; out: { id: number; entry: string }[] };
  isPruneDue: { in: null; out: boolean };
  prune: { in: null; out: { more: boolean } };
  checkpoint: { in: null; out: null };
  copyTo: { in: { path: string }; out: null };
  close: { in: null; out: null };
}

/** The name of a call. */
export type CallName = keyof Calls;

/** One call; `call` is the number that its answer repeats. */
export type WriterCall = {
  [Name in CallName]: { kind: 'call'; call: number; name: Name; input: Calls[Name]['in'] };
}[CallName];

/** A message to an open writer. */
export type ToWriter = Batch | WriterCall;

/** What a writer passes on to the next one in this process. */
export interface WriterState {
  /** Null where the outbox was not adopted yet. */
  owner: Ownership | null;
  offset_ms: number;
  /** The files that it has left open; null where there are none. */
  left: LeftFiles | null;
}

/**
 * A thread first opens the outbox, then takes the messages of a writer. `held`: the lock's file, if the main thread holds
 * it; else null.
 */
export type ToWriterThread =
  | { kind: 'open'; previous: WriterState | null; held: FileIdentity | null }
  | ToWriter;

/** The results of one batch. `is_recorded` is false while its outcomes wait for a disk that works. */
export interface BatchDone {
  batch: number;
  results: AppendResult[];
  is_recorded: boolean;
}

/**
 * What the writer repaired while it ran.
 * - `restored`: the files were removed or replaced, and were written again with everything they held
 * - `replaced`: the database was damaged and is set aside; what could be read of it was taken over
 * - `failed`: records that the disk changed are not sent
 * - `forged`: records that this sandbox's daemon did not make are not sent
 */
export interface Mended {
  how: 'restored' | 'replaced' | 'failed' | 'forged';
  /** Acknowledged records that were pending and cannot be sent. */
  lost_records: number;
  set_aside: string | null;
}

/** The result of opening the outbox. */
export type OpenResult =
  | { kind: 'opened'; offset_ms: number; counts: OutboxCounts; sandbox_id: string | null }
  | { kind: 'refused'; message: string; may_pass: boolean }
  /** Only the writer thread opens it: it is large, or must be salvaged, which may take long. */
  | { kind: 'thread_due' };

/** A message of the writer. */
export type FromWriter =
  | OpenResult
  /** The thread runs, and has not opened anything. */
  | { kind: 'up' }
  | {
      kind: 'done';
      batches: BatchDone[];
      /** Null where they are what they were. */
      counts: OutboxCounts | null;
      /** Records that were added, where the last batch wanted them; null where they are to be read. */
      added: LoadedRecord[] | null;
      /** Failed and expired records that were removed before their time, to make room, since the last such message. */
      dropped: number;
      /** Why the commit did not reach the disk, or null. */
      trouble: string | null;
      commit_ms: number;
    }
  | ({ kind: 'mended' } & Mended)
  /** The outbox can no longer be written. */
  | { kind: 'fault'; message: string }
  | { kind: 'answer'; call: number; counts: OutboxCounts; output: unknown; error: string | null };

/** Whether a message says what became of opening the outbox. */
export function isOpenResult(message: FromWriter): message is OpenResult {
  return message.kind === 'opened' || message.kind === 'refused' || message.kind === 'thread_due';
}

/** What a batch comes to that could not be committed: its appends are refused, its outcomes wait for a later commit. */
export function refusedBatch(message: ToWriter): BatchDone[] {
  if (message.kind !== 'batch') return [];
  const { batch, appends, outcomes } = message;
  const results = appends.map((): AppendResult => ({ outcome: 'unavailable' }));
  return [{ batch, results, is_recorded: outcomes.length === 0 }];
}

/** What is left of a message whose appends were refused: nothing of a batch without outcomes. */
export function withoutAppends(message: ToWriter): ToWriter[] {
  if (message.kind !== 'batch') return [message];
  return message.outcomes.length > 0 ? [{ ...message, appends: [] }] : [];
}
