import { lstatSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Clock } from '../../../base/clock.ts';
import { DELIVERY_WINDOW_MS } from '../../../contract/defaults.ts';
import { databasePath, hasLostHeader } from '../files/database-file.ts';
import type { Mark } from '../files/high-water.ts';
import { setAsidePath, unsalvaged } from '../files/set-aside.ts';
import type { OutboxRow } from '../rows/rows.ts';
import { storeNow } from '../rows/store-clock.ts';
import { DamagedOutbox, type ReadableRecord } from '../salvage/damaged-outbox.ts';
import { expectedPending } from '../salvage/salvage.ts';
import { salvagedDelivery, salvagedRecord } from '../salvage/salvaged-rows.ts';
import { troubleOf } from '../store-errors.ts';
import type { PendingRow } from './belief.ts';
import { countOf, missingAtEnd, storedAttempts, trustedOutboxRow } from './trusted-outbox.ts';
import {
  type HandOverSource,
  type NotHandedOver,
  type UndeliveredPage,
  type UndeliveredRecord,
  undeliveredRecord,
} from './undelivered-record.ts';

const PAGE_RECORDS = 200;
const PAGE_BYTES = 4 * 1024 * 1024;
/** A row whose texts are longer was written by no daemon; it is not even read. */
const TEXT_MAX_BYTES = 8 * 1024 * 1024;
/** More than the bounds of an outbox allow; rows beyond it are not read. */
const TOTAL_MAX_BYTES = 1024 * 1024 * 1024;

const INCOMPLETE = 'records are missing or damaged';
const TOO_MUCH = 'it is larger than an outbox can be';

/** The pending records of a stopped outbox: page by page while it is whole, record by record where it is not. */
export class UndeliveredRecords {
  readonly #source: HandOverSource;
  readonly #clock: Clock;
  readonly #mark: Mark | null;
  readonly #seen = new Set<string>();
  /** Event ids of what the daemon did not make. */
  readonly #set_aside = new Set<string>();
  /** Rows that cannot be used as they are. */
  #rejected = 0;
  #bytes = 0;

  /** `mark`: the sandbox's high-water mark, or null where there is none. */
  constructor(source: HandOverSource, clock: Clock, mark: Mark | null) {
    this.#source = source;
    this.#clock = clock;
    this.#mark = mark;
  }

  /** How many records were read and are whole. */
  get read(): number {
    return this.#seen.size;
  }

  /** Yields the pages. Throws what may pass, such as a disk in trouble; damage ends in the last page's `trouble`. */
  *pages(): Generator<UndeliveredPage> {
    const { state_dir } = this.#source;
    const path = databasePath(state_dir);
    const is_there = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
    const waiting = unsalvaged(state_dir);
    if (!is_there && waiting.length === 0 && !this.#mark) return;
    let trouble = 'the outbox is missing or its header is lost';
    if (is_there && !hasLostHeader(path)) {
      try {
        yield* this.#whole(path, waiting);
        return;
      } catch (error) {
        if (troubleOf(error) === 'away') throw error;
        trouble = (error as Error).message;
      }
    }
    yield* this.#damaged([path, ...this.#paths(waiting)], trouble);
  }

  #paths(numbers: number[]): string[] {
    return numbers.map((number) => setAsidePath(this.#source.state_dir, 'unsalvaged', number));
  }

  /** Throws damage at the first of it. */
  *#whole(path: string, waiting: number[]): Generator<UndeliveredPage> {
    // Never this outbox's own; one that names another file could have that removed.
    rmSync(`${path}-journal`, { force: true });
    const db = new Database(path, { timeout: 0, fileMustExist: true });
    let unfinished: number[];
    let expected: number;
    try {
      const outbox = trustedOutboxRow(db);
      yield* this.#pagesOf(db, outbox);
      const salvaged = db.pragma('application_id', { simple: true }) as number;
      unfinished = waiting.filter((number) => number > salvaged);
      expected = this.#expected(db, outbox);
    } finally {
      db.close();
    }
    if (this.#isTooMuch) {
      yield this.#last(0, TOO_MUCH);
      return;
    }
    if (unfinished.length === 0 && this.#rejected === 0 && this.read + this.#set_aside.size >= expected) {
      if (this.#set_aside.size > 0) yield this.#last(0, null);
      return;
    }
    // A bad row, or an unfinished salvage: what is whole of the rest is there all the same.
    this.#rejected = 0;
    this.#set_aside.clear();
    yield* this.#damaged([path, ...this.#paths(unfinished)], INCOMPLETE);
  }

  /** How many records are pending by the outbox's own count; the last start may have been under another id. */
  #expected(db: Database.Database, outbox: OutboxRow): number {
    const { sandbox_id } = this.#source;
    if (outbox.sandbox_id === sandbox_id) return countOf(outbox.pending) + missingAtEnd(outbox, this.#mark);
    return countOf(db.prepare('SELECT pending FROM sandboxes WHERE sandbox_id = ?').pluck().get(sandbox_id));
  }

  #last(lost_records: number, trouble: string | null): UndeliveredPage {
    return { records: [], lost_records, set_aside: this.#set_aside.size, trouble };
  }

  get #isTooMuch(): boolean {
    return this.#bytes > TOTAL_MAX_BYTES;
  }

  *#pagesOf(db: Database.Database, outbox: OutboxRow): Generator<UndeliveredPage> {
    const now_ms = storeNow(outbox, this.#clock);
    // Not by an index, which may be what is damaged.
    const found = db.prepare(`SELECT id, event_id, event_type, sandbox_id, sequence, headers, body, checksum,
      mac, created_at_ms, deadline_ms, due_ms, probe_ms, attempts, failures
      FROM deliveries NOT INDEXED CROSS JOIN records NOT INDEXED USING (id)
      WHERE id > ? AND state = 'pending' AND sandbox_id = ? AND octet_length(body) + octet_length(headers) < ?
      ORDER BY id LIMIT ?`);
    for (let last_id = 0; !this.#isTooMuch; ) {
      const rows: PendingRow[] = [];
      let bytes = 0;
      for (const row of found.iterate(last_id, this.#source.sandbox_id, TEXT_MAX_BYTES, PAGE_RECORDS)) {
        rows.push(row as PendingRow);
        bytes += String((row as PendingRow).body).length;
        if (bytes > PAGE_BYTES) break;
      }
      this.#bytes += bytes;
      const next_id = rows.at(-1)?.id ?? last_id;
      if (next_id <= last_id) return;
      last_id = next_id;
      const records = rows.flatMap((row) => this.#takenWhole(row, storedAttempts(db, row.id), now_ms));
      if (records.length > 0) yield { records, lost_records: 0, set_aside: 0, trouble: null };
    }
  }

  #takenWhole(row: PendingRow, attempts: unknown[], now_ms: number): UndeliveredRecord[] {
    // The headers repeat most columns: they can replace one that the disk changed.
    const repaired = () => salvagedRecord({ ...row });
    const taken = this.#taken(row, attempts, now_ms);
    if (typeof taken !== 'string') return taken;
    const again = taken === 'not_believed' ? repaired() : null;
    const believed = again && this.#taken({ ...row, ...again, mac: row.mac }, attempts, now_ms);
    if (believed && typeof believed !== 'string') return believed;
    if (taken === 'damaged') this.#rejected += 1;
    else this.#set_aside.add(`row ${row.id}`);
    return [];
  }

  /** The record, or none where it was taken already; or why it is not taken. */
  #taken(row: PendingRow, attempts: unknown[], now_ms: number): UndeliveredRecord[] | NotHandedOver {
    if (this.#seen.has(row.event_id)) return [];
    const record = undeliveredRecord(row, attempts, now_ms, this.#source);
    if (typeof record === 'string') return record;
    this.#seen.add(record.event_id);
    return [record];
  }

  /** Reads past whatever cannot be read, newest outbox first, what has not been read yet. */
  *#damaged(paths: string[], trouble: string): Generator<UndeliveredPage> {
    const opened: { path: string; outbox: DamagedOutbox }[] = [];
    try {
      for (const path of paths) {
        const outbox = DamagedOutbox.open(path);
        if (outbox) opened.push({ path, outbox });
      }
      const outboxes = opened.map(({ outbox }) => outbox);
      const expected = countOf(expectedPending(outboxes, this.#mark));
      const passed = new Set<string>();
      for (const outbox of outboxes) yield* this.#pagesOfDamaged(outbox, passed);
      const lost = Math.max(0, expected - this.read - this.#set_aside.size, this.#rejected);
      const reported = this.#isTooMuch ? TOO_MUCH : lost > 0 ? trouble : null;
      if (reported !== null || this.#set_aside.size > 0) yield this.#last(lost, reported);
    } finally {
      for (const { path, outbox } of opened) outbox.close(path);
    }
  }

  *#pagesOfDamaged(outbox: DamagedOutbox, passed: Set<string>): Generator<UndeliveredPage> {
    const row = outbox.outbox();
    const wall_ms = this.#clock.wallMs();
    const now_ms = row ? storeNow(row, this.#clock) : wall_ms;
    let records: UndeliveredRecord[] = [];
    let bytes = 0;
    for (const found of outbox.records()) {
      if (this.#isTooMuch) return;
      const read = this.#read(found, { now_ms, wall_ms, window_ms: DELIVERY_WINDOW_MS }, passed);
      records.push(...read);
      bytes += read[0]?.body.length ?? 0;
      if (records.length < PAGE_RECORDS && bytes < PAGE_BYTES) continue;
      yield { records, lost_records: 0, set_aside: 0, trouble: null };
      this.#bytes += bytes;
      records = [];
      bytes = 0;
    }
    if (records.length > 0) yield { records, lost_records: 0, set_aside: 0, trouble: null };
  }

  /** `passed`: events of which is known what became of them. */
  #read(
    { record: row, delivery, attempts }: ReadableRecord,
    time: { now_ms: number; wall_ms: number; window_ms: number },
    passed: Set<string>,
  ): UndeliveredRecord[] {
    const record = salvagedRecord(row);
    if (!record || record.sandbox_id !== this.#source.sandbox_id || passed.has(record.event_id)) return [];
    const known = salvagedDelivery(delivery, record, time);
    if (known && known.state !== 'pending') {
      passed.add(record.event_id);
      return [];
    }
    const deadline_ms = record.created_at_ms - time.wall_ms + time.now_ms + time.window_ms;
    // The number of attempts alone is of use where the rest makes no sense.
    const attempts_made = delivery?.attempts as number;
    const never_tried = { attempts: attempts_made, failures: 0, due_ms: 0, probe_ms: null, deadline_ms };
    const pending = known ?? never_tried;
    const due_ms = pending.due_ms ?? 0;
    const taken = this.#taken({ ...record, ...pending, due_ms }, attempts, time.now_ms);
    if (typeof taken === 'string') {
      if (!this.#seen.has(record.event_id)) this.#set_aside.add(record.event_id);
      return [];
    }
    passed.add(record.event_id);
    this.#set_aside.delete(record.event_id);
    return taken;
  }
}
