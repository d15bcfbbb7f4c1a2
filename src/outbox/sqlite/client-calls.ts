import type { Clock } from '../../base/clock.ts';
import { COMMIT_TIMEOUT_MS } from '../../contract/defaults.ts';
import type { DeliveryDetail, DeliveryPage, FinalState, OutboxCounts } from '../../contract/deliveries.ts';
import { ApiError } from '../../contract/errors.ts';
import type { DeliveryFilter, DueRecord, StreamRecord } from '../store.ts';
import type { CallName, Calls, FromWriter, WriterCall } from './messages.ts';
import type { LifecycleRow } from './rows/lifecycle-records.ts';

/** Records made pending again in one commit. */
const REPLAYED_AT_ONCE = 500;
/** How long a copy of the whole database may take. */
const COPY_TIMEOUT_MS = 60_000;

interface PendingCall {
  resolve: (output: unknown) => void;
  reject: (error: Error) => void;
}

/** The client's calls, which the writer answers one by one. Every verb rejects with `outbox_unavailable`. */
export abstract class ClientCalls {
  readonly #clock: Clock;
  #number = 0;
  /** Not answered yet, each with a deadline of its own. */
  readonly #pending = new Map<number, PendingCall>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends a call to the writer; throws where there is none. */
  protected abstract post(call: WriterCall): void;

  /** Records by state, and bytes, as of the last answer of the writer. */
  abstract counts(): OutboxCounts;

  /** Resolves to the writer's answer; rejects with `outbox_unavailable` without one after `within_ms`. */
  protected call<Name extends CallName>(
    name: Name,
    input: Calls[Name]['in'],
    within_ms = COMMIT_TIMEOUT_MS,
  ): Promise<Calls[Name]['out']> {
    return new Promise((resolve, reject) => {
      const call = ++this.#number;
      this.post({ kind: 'call', call, name, input } as WriterCall);
      const timer = this.#clock.after(within_ms, () => {
        this.#pending.delete(call);
        reject(new ApiError('outbox_unavailable'));
      });
      this.#pending.set(call, {
        resolve: (output) => {
          timer.cancel();
          resolve(output as Calls[Name]['out']);
        },
        reject: (error) => {
          timer.cancel();
          reject(error);
        },
      });
    });
  }

  /** Passes on the writer's answer. A call that is no longer pending is ignored. */
  protected answer({ call, output, error }: Extract<FromWriter, { kind: 'answer' }>): void {
    const pending = this.#pending.get(call);
    this.#pending.delete(call);
    if (error === null) pending?.resolve(output);
    else pending?.reject(new ApiError('outbox_unavailable', undefined, { reason: error }));
  }

  /** Rejects every pending call. */
  protected rejectAll(): void {
    for (const call of this.#pending.values()) call.reject(new ApiError('outbox_unavailable'));
  }

  /** See `DeliveryStore.untried`. */
  untried(after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }> {
    return this.call('untried', { after_id, limit });
  }

  /** See `DeliveryStore.due`. */
  due(limit: number): Promise<{ records: DueRecord[]; next_due_ms: number | null }> {
    return this.call('due', { limit });
  }

  /** See `DeliveryStore.overdue`. */
  overdue(limit: number): Promise<{ records: DueRecord[]; next_deadline_ms: number | null }> {
    return this.call('overdue', { limit });
  }

  /** See `DeliveryStore.probeCandidate`. */
  probeCandidate(in_flight: number[]): Promise<DueRecord | null> {
    return this.call('probeCandidate', { in_flight });
  }

  /** One page of deliveries, read in parts so that publishes are committed in between. */
  async list(filter: DeliveryFilter): Promise<DeliveryPage> {
    const deliveries: DeliveryPage['deliveries'] = [];
    let { before_id } = filter;
    for (let last_id: number | null = null; ; ) {
      const part = await this.call('list', {
        ...filter,
        before_id,
        limit: filter.limit - deliveries.length,
      });
      deliveries.push(...part.deliveries);
      last_id = part.last_id ?? last_id;
      if (part.more) return { deliveries, next_cursor: last_id === null ? null : String(last_id) };
      if (part.scanned_to === null) return { deliveries, next_cursor: null };
      before_id = part.scanned_to;
    }
  }

  /** One delivery with its body and attempts, or null. */
  find(event_id: string): Promise<DeliveryDetail | null> {
    return this.call('find', { event_id });
  }

  /** See `InspectionStore.replay`. */
  replay(event_id: string): Promise<boolean> {
    return this.call('replay', { event_id });
  }

  /**
   * Replays every record in a state, in parts so that publishes are committed in between; resolves to their number.
   * A record that ends in that state meanwhile stays as it is.
   */
  async replayAll(state: FinalState): Promise<number> {
    const all = this.counts()[state];
    let replayed = 0;
    while (replayed < all) {
      const limit = Math.min(REPLAYED_AT_ONCE, all - replayed);
      const some = await this.call('replaySome', { state, limit });
      if (some === 0) break;
      replayed += some;
    }
    return replayed;
  }

  /** See `InspectionStore.after`. */
  after(sequence: number, limit: number): Promise<StreamRecord[]> {
    return this.call('after', { sequence, limit });
  }

  /** Up to `limit` of the sandbox's own `sandbox.*` records after a sequence, as they are stored, oldest first. */
  lifecycle(sequence: number, limit: number): Promise<LifecycleRow[]> {
    return this.call('lifecycle', { sequence, limit });
  }

  /** The highest sequence that was given out; 0 before the first. */
  lastSequence(): Promise<number> {
    return this.call('lastSequence', null);
  }

  /** Wall time of the oldest pending record's commit, or null. */
  oldestPending(): Promise<number | null> {
    return this.call('oldestPending', null);
  }

  /** Rows of the watched tree after an id, in order. */
  tree(after_id: number, limit: number): Promise<{ id: number; entry: string }[]> {
    return this.call('tree', { after_id, limit });
  }

  /** Whether `prune` has something to remove or to give back. */
  isPruneDue(): Promise<boolean> {
    return this.call('isPruneDue', null);
  }

  /** Removes some records past their retention; `more` if others are left. */
  prune(): Promise<{ more: boolean }> {
    return this.call('prune', null);
  }

  /** Writes the log back into the database file and empties it. */
  async checkpoint(): Promise<void> {
    await this.call('checkpoint', null);
  }

  /** Writes a copy of the database, as of the last commit, to a path; what is there is replaced. */
  async copyTo(path: string): Promise<void> {
    await this.call('copyTo', { path }, COPY_TIMEOUT_MS);
  }
}
