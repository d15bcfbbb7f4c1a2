import type { AppendResult } from '../store.ts';
import type { Batch } from './protocol.ts';

/** A batch that is being collected, or that the writer has not answered in full. */
export interface PendingBatch {
  message: Batch;
  /** Monotonic time at which it was sent; 0 before. */
  sent_ms: number;
  /** One per append. */
  answer: ((result: AppendResult) => void)[];
  /** One per outcome. */
  recorded: (() => void)[];
  is_answered: boolean;
  /** It took too long: callers that wait for a prompt answer were given `unavailable`. */
  is_given_up: boolean;
}

/** An empty batch with a number of its own. */
export function newBatch(batch: number): PendingBatch {
  const message: Batch = { kind: 'batch', batch, appends: [], outcomes: [], wants_records: false };
  return { message, sent_ms: 0, answer: [], recorded: [], is_answered: false, is_given_up: false };
}
