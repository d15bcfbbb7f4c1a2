import type { Clock, Timer } from '../base/clock.ts';
import { type ProcessRecord, RecordFile } from './record.ts';

const SAVE_DELAY_MS = 100;
/** A process that has run this long also survives a power cut. */
const SYNC_DELAY_MS = 1_000;

/** Decides when the record of a process is written, and reports what the disk refuses instead of throwing it. */
export class RecordSaver {
  readonly #clock: Clock;
  readonly #record: ProcessRecord;
  readonly #file: RecordFile;
  readonly #onError: (error: unknown, message: string) => void;
  #save_timer: Timer | null = null;
  #sync_timer: Timer | null = null;

  /** `onError` is called with every error that `save` and the timers meet. */
  constructor(
    clock: Clock,
    folder: string,
    record: ProcessRecord,
    onError: (error: unknown, message: string) => void,
  ) {
    this.#clock = clock;
    this.#record = record;
    this.#file = new RecordFile(folder, record);
    this.#onError = onError;
  }

  /** The file itself, for a start, which must know whether the record was written. */
  get file(): RecordFile {
    return this.#file;
  }

  /** Saves the record now. Never rejects. */
  save(): Promise<void> {
    this.#save_timer?.cancel();
    this.#save_timer = null;
    return this.#file.save().catch((error) => this.#onFailure(error));
  }

  /** Saves the record where it is called: see RecordFile. Never rejects. */
  async saveInPlace(): Promise<void> {
    await this.#file.saveInPlace().catch((error) => this.#onFailure(error));
  }

  /** Saves within 100 ms what may be lost without harm, together with other changes made meanwhile. */
  saveSoon(): void {
    this.#save_timer ??= this.#clock.after(SAVE_DELAY_MS, () => void this.save());
  }

  /** Syncs the record once, a second after the first call: later changes matter only while the process is alive. */
  syncLater(): void {
    this.#sync_timer ??= this.#clock.after(SYNC_DELAY_MS, () => void this.#sync());
  }

  /** Stops the sync that is scheduled. */
  cancelSync(): void {
    this.#sync_timer?.cancel();
  }

  /** Closes the file without another save. Resolves when no save is under way. */
  async close(): Promise<void> {
    this.#save_timer?.cancel();
    await this.#file.close();
  }

  #onFailure(error: unknown): void {
    this.#onError(error, 'a process record could not be saved');
  }

  async #sync(): Promise<void> {
    if (this.#record.is_final) return;
    await this.#file.sync().catch((error) => this.#onError(error, 'a process record could not be synced'));
  }
}
