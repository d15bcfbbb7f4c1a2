import type { Clock } from '../../base/clock.ts';
import type { OutboxCounts } from '../../contract/deliveries.ts';
import type { Adoption, LoadedRecord } from '../store.ts';
import type { OutboxFiles } from './files/outbox-files.ts';
import { DirectoryTakenError } from './files/state-lock.ts';
import type { FromWriter, WriterState } from './messages.ts';
import { Inspection } from './rows/inspection.ts';
import type { OutboxLimits, Ownership } from './rows/outbox-state.ts';
import { SqliteStore } from './rows/sqlite-store.ts';
import { salvage } from './salvage/salvage.ts';
import { troubleOf } from './store-errors.ts';
import { WriteAheadLog } from './write-ahead-log.ts';

/** The least time between two databases that are set aside: a disk that damages everything must not be filled up. */
const SET_ASIDE_INTERVAL_MS = 60_000;

/** What a writer works with. */
export interface WriterParts {
  files: OutboxFiles;
  limits: OutboxLimits;
  clock: Clock;
  reply: (message: FromWriter) => void;
  /** State of the previous writer in this process. */
  previous?: WriterState | null;
}

/**
 * The open outbox: its transactions, and the repair of what a disk or other programs did to its files.
 *
 * | State | Entered by | Left by |
 * |---|---|---|
 * | log in doubt | opening, a change that failed, files that were put back | `begin`: writes the log back → sound |
 * | sound | `begin` | a change that failed → log in doubt; damage → set aside |
 * | set aside: the damaged database is closed, under another name | `undo` of damage | `mend`: opens a new one → salvage due |
 * | salvage due: records wait in a damaged database | opening, `mend` | `mend`: takes them over → log in doubt |
 *
 * `begin` goes through all of them, in this order, before it begins.
 */
export class OpenOutbox {
  readonly log: WriteAheadLog;
  readonly #files: OutboxFiles;
  readonly #limits: OutboxLimits;
  readonly #clock: Clock;
  readonly #reply: (message: FromWriter) => void;
  #store: SqliteStore;
  #inspection: Inspection;
  #set_aside_ms = Number.NEGATIVE_INFINITY;
  /** How many records were pending in the damaged databases that are to be taken over. */
  #expected_pending = 0;
  /** Acknowledged records that were pending and could not be taken over at the start. */
  #lost_at_start = 0;

  constructor({ files, limits, clock, reply, previous }: WriterParts) {
    this.#files = files;
    this.#limits = limits;
    this.#clock = clock;
    this.#reply = reply;
    this.log = new WriteAheadLog(files, clock, (error) => this.undo(error));
    if (files.is_salvage_due) this.#expected_pending = files.continueDamaged();
    this.#store = new SqliteStore(files.db, clock, limits, undefined, previous?.offset_ms);
    this.#inspection = this.#inspect();
    if (previous?.owner) this.adopt(previous.owner);
  }

  /** The rows; others after a repair. */
  get store(): SqliteStore {
    return this.#store;
  }

  /** The views of the rows; others after a repair. */
  get inspection(): Inspection {
    return this.#inspection;
  }

  /** The files. */
  get files(): OutboxFiles {
    return this.#files;
  }

  /** Records by state, and bytes. */
  counts(): OutboxCounts {
    return this.#store.counts();
  }

  /** Begins a transaction, after any repair. `drafts`: how many are about to be appended, at least. */
  begin(drafts = 0): void {
    this.mend();
    this.log.sync();
    this.#store.begin(drafts);
  }

  /** Makes everything since `begin` durable, under the names that a restart looks at; returns what was added. */
  end(): LoadedRecord[] {
    const added = this.#store.commit();
    this.#afterCommit();
    return added;
  }

  /**
   * Only what a restart finds is durable: files whose names are gone are put back, and the high-water mark is updated,
   * before anybody is answered: where the daemon dies next and its log is lost, the mark tells what is missing.
   */
  #afterCommit(): void {
    if (!this.#files.areInPlace()) {
      this.#files.restore();
      this.#useNewDatabase();
      this.#openMark();
      this.#reply({ kind: 'mended', how: 'restored', lost_records: 0, set_aside: null });
    }
    this.#files.high_water.write(this.#store.next_sequence - 1, this.#store.counts().pending);
  }

  /** Rolls back a change that failed, and handles the reason: a damaged database, or another owner. */
  undo(error: unknown): void {
    this.log.doubt();
    if (this.#files.db.open) this.#store.rollback();
    if (troubleOf(error) === 'damage') this.#setAsideDamaged();
    if (error instanceof DirectoryTakenError) this.#reply({ kind: 'fault', message: error.message });
  }

  /** One change in a transaction of its own. `rows`: how many it changes, about. Throws after a failure; then `undo` it. */
  write<Result>(change: () => Result, rows = 1): Result {
    this.begin();
    const result = change();
    this.end();
    this.log.noteCommit(rows, 0);
    return result;
  }

  /** Opens a new database where a damaged one was set aside, and takes over all that can be read of that. */
  mend(): void {
    if (!this.#files.db.open) {
      this.#files.open();
      this.#useNewDatabase();
    }
    if (!this.#files.is_salvage_due) return;
    const is_start = this.#store.owner === null;
    this.log.sync();
    this.#store.begin();
    const time = { wall_ms: this.#clock.wallMs(), window_ms: this.#limits.window_ms };
    const taken = salvage(this.#files.damaged(), this.#store.taken_over, time);
    this.#files.noteSalvaged();
    this.#store.commit();
    const set_aside = this.#files.salvaged();
    this.log.noteSalvage();
    const lost_records = Math.max(0, this.#expected_pending - taken);
    if (is_start) this.#lost_at_start = lost_records;
    else this.#reply({ kind: 'mended', how: 'replaced', lost_records, set_aside });
  }

  #setAsideDamaged(): void {
    const now_ms = this.#clock.monotonicMs();
    if (now_ms - this.#set_aside_ms < SET_ASIDE_INTERVAL_MS) return;
    this.#set_aside_ms = now_ms;
    try {
      this.#files.setAside();
      this.#expected_pending = this.#store.counts().pending;
    } catch {
      // A disk that refuses this as well is in trouble: SQLite reports temporary read errors as damage, too.
    }
  }

  #useNewDatabase(): void {
    const { db } = this.#files;
    this.#store = new SqliteStore(db, this.#clock, this.#limits, this.#store);
    this.#inspection = this.#inspect();
    this.log.doubt();
  }

  #inspect(): Inspection {
    return new Inspection(this.#files.db, this.#clock, () => this.#store);
  }

  /** Makes a sandbox the owner of the outbox; returns which of its records are missing or foreign. */
  adopt(owner: Ownership): Adoption {
    const { sandbox_id: earlier } = this.#store;
    const mark = this.#files.high_water.read();
    const is_ours = mark?.sandbox_id === owner.sandbox_id;
    // What was found belongs to this sandbox, or was lost as a whole.
    const acknowledged = is_ours && (earlier === null || earlier === owner.sandbox_id) ? mark.sequence : 0;
    const missing_records = Math.max(0, acknowledged - (this.#store.next_sequence - 1));
    if (missing_records > 0 && earlier !== null) {
      this.#files.keepAsFound();
      this.#useNewDatabase();
    }
    this.write(() => {
      this.#store.adopt(owner);
      this.#store.skipSequence(acknowledged);
    });
    this.#openMark();
    const { foreign: foreign_records } = this.#store.counts();
    return {
      was_ready: this.#store.is_ready,
      missing_records: Math.max(missing_records, this.#lost_at_start),
      lost_records: this.#lost_at_start || Math.min(missing_records, mark?.pending ?? 0),
      set_aside: this.#files.set_aside,
      foreign_records,
      foreign_pending: this.#store.foreignPending(),
    };
  }

  #openMark(): void {
    const { sandbox_id, next_sequence } = this.#store;
    const { pending } = this.#store.counts();
    this.#files.high_water.open({ sandbox_id: sandbox_id ?? '', sequence: next_sequence - 1, pending });
  }

  /** Writes the log back early, where that is due. */
  writeBack(): void {
    if (!this.log.is_write_back_due) return;
    this.log.writeBack(() => {
      try {
        // The first commit to an emptied log needs one more sync: this one, which no caller waits for.
        this.write(() => {}, 0);
      } catch (error) {
        this.undo(error);
      }
    });
  }

  /** Writes the log back and closes the files. */
  close(): void {
    this.log.checkpoint('TRUNCATE');
    this.#files.close();
  }
}
