import type { PendingRow, Trust } from './belief.ts';
import { type LifecycleEvent, undeliveredRecord } from './undelivered-record.ts';

/** Nothing of it is of use here: the record is not to be delivered. */
const DELIVERY = { id: 0, deadline_ms: 0, due_ms: 0, probe_ms: null, attempts: 0, failures: 0 };

/** A record as it was read from a place that others may have written: any column may be anything. */
export type FoundLifecycle = Omit<PendingRow, keyof typeof DELIVERY>;

/** What a daemon says of a sandbox's life is far shorter: its longest text is the reason of a pause. */
const BODY_MAX = 64 * 1024;

/** The event of a record that the sandbox's daemon has made; null for any other. */
export function lifecycleEvent(row: FoundLifecycle, trust: Trust): LifecycleEvent | null {
  if (typeof row.body !== 'string' || row.body.length > BODY_MAX) return null;
  const record = undeliveredRecord({ ...row, ...DELIVERY }, [], 0, trust);
  if (typeof record === 'string' || !record.event_type.startsWith('sandbox.')) return null;
  const { event_id, event_type, sequence, body, created_at_ms } = record;
  return { event_id, event_type, sequence, body, created_at_ms };
}
