import { OUTBOX_RESERVE_RECORDS } from '../../../contract/defaults.ts';
import { newEventIds, signedEvent } from '../../../webhook/signed-event.ts';
import type { Append, AppendResult, EventDraft, LoadedRecord } from '../../store.ts';
import type { LifecycleRecords } from './lifecycle-records.ts';
import type { OutboxState, Ownership } from './outbox-state.ts';
import { recordMac } from './record-mac.ts';
import { checksumOf, recordSizeBytes } from './rows.ts';
import type { Statements } from './statements.ts';

/** The share of both bounds that file events may use: the rest is for publishes. Meanwhile, names wait in the watch. */
const FILE_EVENTS_SHARE = 0.5;

/** What a record of the reserve takes at most, on average: two previews of output and more. */
const RESERVE_RECORD_BYTES = 16 * 1024;

/** The records that a transaction adds. Source: contract section 3, Acknowledge and Bounds. */
export class AddedRecords {
  readonly #sql: Statements;
  readonly #state: OutboxState;
  readonly #lifecycle: LifecycleRecords;
  #added: LoadedRecord[] = [];
  #has_unsent = false;
  /** Event ids for what this transaction adds, made with one call to the kernel. */
  #event_ids: string[] = [];

  constructor(sql: Statements, state: OutboxState, lifecycle: LifecycleRecords) {
    this.#sql = sql;
    this.#state = state;
    this.#lifecycle = lifecycle;
  }

  /** Whether the last transaction has added a record without a delivery, which `end` does not return. */
  get has_unsent(): boolean {
    return this.#has_unsent;
  }

  /** Prepares for a transaction with at least so many drafts. */
  begin(drafts: number): void {
    this.#added = [];
    this.#has_unsent = false;
    this.#event_ids = newEventIds(drafts, this.#state.clock.wallMs());
  }

  /** Ends the transaction; returns what it added. */
  end(): LoadedRecord[] {
    const added = this.#added;
    this.#added = [];
    this.#event_ids = [];
    return added;
  }

  /** Adds the records of an append, or says why not. */
  append(append: Append): AppendResult {
    const { drafts, tree, requires } = append;
    if (requires !== undefined && !this.#keyed(requires)) return { outcome: 'unneeded' };
    const [first] = drafts;
    if (first?.idempotency_key !== undefined) {
      const earlier = this.#repeated(first, first.idempotency_key);
      if (earlier) return earlier;
    }
    if (first?.event_type === 'sandbox.ready' && this.#state.row.is_ready === 1) {
      return { outcome: 'unneeded' };
    }
    if (!first?.unsent && !this.#hasRoom(drafts)) return { outcome: 'full' };
    if (this.#event_ids.length < drafts.length) {
      this.#event_ids = newEventIds(drafts.length, this.#state.clock.wallMs());
    }
    const event_ids = this.#event_ids.splice(0, drafts.length);
    const records = drafts.map((draft, i) => this.#insert(draft, event_ids[i] as string));
    for (const { id, entry } of tree?.put ?? []) this.#sql.putTree.run(id, entry);
    for (const id of tree?.drop ?? []) this.#sql.dropTree.run(id);
    return { outcome: 'committed', records };
  }

  #keyed(key: string): { event_id: string; sequence: number; body: string } | undefined {
    return this.#sql.byIdempotencyKey.get(this.#state.row.sandbox_id, key) as
      | { event_id: string; sequence: number; body: string }
      | undefined;
  }

  #repeated(draft: EventDraft, key: string): AppendResult | null {
    const earlier = this.#keyed(key);
    if (!earlier) return null;
    // The payload is the body's last value, so it ends just before the closing brace.
    const start = earlier.body.length - 1 - draft.payload.length;
    const is_same =
      earlier.body.slice(start, -1) === draft.payload && earlier.body.slice(0, start).endsWith('"payload":');
    if (!is_same) return { outcome: 'conflict' };
    return {
      outcome: 'repeated',
      records: [{ event_id: earlier.event_id, sequence: earlier.sequence }],
    };
  }

  /** Failed and expired records do not count: they make room (`FinishedRecords.makeRoom`). */
  #hasRoom(drafts: EventDraft[]): boolean {
    const { pending, pending_bytes } = this.#state.row;
    const { limits } = this.#state;
    const all = (kind: RegExp) => drafts.every(({ event_type }) => kind.test(event_type));
    const reserve_records = all(/^(sandbox|process)\./) ? OUTBOX_RESERVE_RECORDS : 0;
    const share = drafts.length > 0 && all(/^file\./) ? FILE_EVENTS_SHARE : 1;
    const max_records = Math.ceil(limits.max_records * share) + reserve_records;
    if (pending + drafts.length > max_records) return false;
    return pending_bytes < limits.max_bytes * share + reserve_records * RESERVE_RECORD_BYTES;
  }

  #insert(draft: EventDraft, event_id: string): { event_id: string; sequence: number } {
    const { row, clock, limits, record_key } = this.#state;
    const { sandbox_id, team_id, secret } = this.#state.owner as Ownership;
    const { event_type, happened_at_ms, payload, traceparent } = draft;
    const sequence = row.next_sequence++;
    const id = row.next_id++;
    const { headers, body } = signedEvent(
      { event_id, event_type, happened_at_ms, sandbox_id, team_id, sequence, payload, traceparent },
      'sandboxd',
      secret,
    );
    const headers_text = JSON.stringify(headers);
    const size_bytes = recordSizeBytes(headers_text, body);
    const created_at_ms = clock.wallMs();
    const deadline_ms = this.#state.now() + limits.window_ms;
    const fields = { event_id, event_type, sandbox_id, sequence, created_at_ms };
    this.#sql.insert.run(
      id,
      event_id,
      event_type,
      sandbox_id,
      sequence,
      headers_text,
      body,
      checksumOf(headers_text, body),
      draft.idempotency_key ?? null,
      created_at_ms,
      record_key && recordMac(record_key, { ...fields, headers: headers_text, body }),
    );
    if (event_type.startsWith('sandbox.')) this.#noteLifecycle(event_type);
    if (draft.unsent) {
      this.#has_unsent = true;
      return { event_id, sequence };
    }
    this.#sql.insertDelivery.run(id, row.number, size_bytes, deadline_ms);
    this.#state.count('pending', size_bytes);
    this.#added.push({
      id,
      event_id,
      event_type,
      headers,
      body,
      body_bytes: body.length,
      attempts: 0,
      failures: 0,
      deadline_ms,
      probe_ms: 0,
      created_at_ms,
    });
    return { event_id, sequence };
  }

  #noteLifecycle(event_type: string): void {
    const { row } = this.#state;
    if (event_type === 'sandbox.ready') row.is_ready = 1;
    if (event_type === 'sandbox.killed') row.is_ready = 0;
    this.#lifecycle.trim();
  }
}
