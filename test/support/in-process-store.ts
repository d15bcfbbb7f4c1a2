import type { Database } from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/base/clock.ts';
import { openOutboxDatabase } from '../../src/outbox/sqlite/files/database-file.ts';
import { prepareStateDir } from '../../src/outbox/sqlite/files/state-files.ts';
import { SqliteStore } from '../../src/outbox/sqlite/rows/sqlite-store.ts';
import type {
  AttemptOutcome,
  DeliveryStore,
  DueRecord,
  EventDraft,
  LoadedRecord,
  RecordsListener,
} from '../../src/outbox/store.ts';
import { scratchFolder } from './scratch.ts';

const WINDOW_MS = 24 * 60 * 60 * 1000;

export interface StoreSettings {
  state_dir?: string;
  window_ms?: number;
  max_bytes?: number;
  max_records?: number;
  secret?: string;
  sandbox_id?: string;
  record_key?: string;
}

/** The real rows on a real disk, opened for a sandbox, on the test's clock. */
export function openRows(clock: Clock, settings: StoreSettings = {}): { rows: SqliteStore; db: Database } {
  const state_dir = settings.state_dir ?? scratchFolder();
  prepareStateDir(state_dir);
  const db = openOutboxDatabase(state_dir);
  onTestFinished(() => void db.close());
  const rows = new SqliteStore(db, clock, {
    max_bytes: settings.max_bytes ?? 2 ** 30,
    max_records: settings.max_records ?? 1_000_000,
    window_ms: settings.window_ms ?? WINDOW_MS,
  });
  rows.begin();
  rows.adopt({
    sandbox_id: settings.sandbox_id ?? 'sb-1',
    team_id: 'team-1',
    secret: settings.secret ?? '',
    record_key: settings.record_key ?? null,
  });
  rows.commit();
  return { rows, db };
}

/** An event as a publisher gives it. */
export function draft(payload = '{}', idempotency_key?: string): EventDraft {
  return { event_type: 'agent.event', happened_at_ms: Date.UTC(2026, 0, 1), payload, idempotency_key };
}

/**
 * The store as the dispatcher uses it, on the test's own thread: the rows are the real ones, and the test decides
 * when a read is answered and when a commit reaches the disk.
 */
export class InProcessStore implements DeliveryStore {
  readonly rows: SqliteStore;
  /** Reads are refused, as by a store that is out of order. */
  is_out_of_order = false;
  /** Reads by a verb that is named here are answered only when its promise has resolved. */
  readonly answers_after: { [Verb in keyof InProcessStore['reads']]?: Promise<void> } = {};
  /** While set, outcomes wait as for a disk that refuses. */
  #refused: (() => void)[] | null = null;
  #listener: RecordsListener | null = null;
  /** How many reads were made, by verb. */
  readonly reads = { untried: 0, due: 0, overdue: 0, probeCandidate: 0 };

  constructor(rows: SqliteStore) {
    this.rows = rows;
  }

  now(): number {
    return this.rows.now();
  }

  /** Commits drafts in one transaction; returns their event ids in order. */
  append(...drafts: EventDraft[]): string[] {
    const wants_records = this.#listener?.hasRoom();
    this.rows.begin();
    const results = drafts.map((each) => this.rows.added.append({ drafts: [each] }));
    const added = this.rows.commit();
    this.#listener?.onAdded(wants_records ? added : null);
    return results.map((result) => ('records' in result ? (result.records[0]?.event_id ?? '') : ''));
  }

  /** Makes finished records pending again. */
  replay(...event_ids: string[]): void {
    this.rows.begin();
    for (const event_id of event_ids) this.rows.finished.replay(event_id);
    this.rows.commit();
  }

  onRecordsAdded(listener: RecordsListener): void {
    this.#listener = listener;
  }

  load(record: LoadedRecord): LoadedRecord {
    return record;
  }

  untried(after_id: number, limit: number): Promise<{ records: DueRecord[]; more: boolean }> {
    return this.#read('untried', () => this.rows.backlog.untried(after_id, limit));
  }

  due(limit: number): Promise<{ records: DueRecord[]; next_due_ms: number | null }> {
    return this.#read('due', () => this.rows.backlog.due(limit));
  }

  overdue(limit: number): Promise<{ records: DueRecord[]; next_deadline_ms: number | null }> {
    return this.#read('overdue', () => this.rows.backlog.overdue(limit));
  }

  probeCandidate(held: number[]): Promise<DueRecord | null> {
    return this.#read('probeCandidate', () => this.rows.backlog.probeCandidate(held));
  }

  async #read<Result>(verb: keyof InProcessStore['reads'], read: () => Result): Promise<Result> {
    this.reads[verb] += 1;
    if (this.is_out_of_order) throw new Error('out of order');
    await this.answers_after[verb];
    // Read last: as from the writer's thread, answers and outcomes arrive in the order in which they were made.
    return read();
  }

  async record(outcome: AttemptOutcome): Promise<void> {
    if (this.#refused) await new Promise<void>((resolve) => this.#refused?.push(resolve));
    this.rows.begin();
    this.rows.outcomes.record([outcome]);
    this.rows.commit();
  }

  /** From now on no outcome reaches the disk. */
  refuseOutcomes(): void {
    this.#refused ??= [];
  }

  /** The disk works again: what waited is written. */
  takeOutcomes(): void {
    const waiting = this.#refused ?? [];
    this.#refused = null;
    for (const write of waiting) write();
  }
}
