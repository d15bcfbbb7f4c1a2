import type { Clock, Timer } from '../base/clock.ts';
import { listenersOn } from '../base/linux/sockets.ts';
import type { OutputStream } from '../contract/processes.ts';
import type { ReadyProbe } from '../contract/schema/process-request.ts';
import type { ProcessRecord } from './record.ts';

/** How often the sockets are read while a port is awaited. */
const POLL_MS = 50;

/** Watches one run of a process until it is ready; then calls `onReady` once. */
export class ReadyWatch {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #text: Buffer | null;
  /** The end of each stream so far, in which the text may begin. */
  readonly #ends: Record<OutputStream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #is_over = false;
  #is_ready = false;
  #timer: Timer | null = null;

  /** A probe for a port starts polling at once. */
  constructor(clock: Clock, probe: ReadyProbe, onReady: () => void) {
    this.#clock = clock;
    this.#onReady = onReady;
    this.#text = probe.log === undefined ? null : Buffer.from(probe.log);
    if (probe.port !== undefined) void this.#poll(probe.port);
  }

  /** Whether the run was ready at some time, which may be before its start is complete. */
  get is_ready(): boolean {
    return this.#is_ready;
  }

  /** Looks for the probe's text in the output, also if it is spread over several pieces. */
  onOutput(stream: OutputStream, data: Buffer): void {
    if (this.#is_over || !this.#text) return;
    const seen = Buffer.concat([this.#ends[stream], data]);
    if (seen.includes(this.#text)) this.#finish();
    this.#ends[stream] = Buffer.from(seen.subarray(Math.max(0, seen.length - this.#text.length + 1)));
  }

  /** Stops watching. */
  close(): void {
    this.#is_over = true;
    this.#timer?.cancel();
  }

  async #poll(port: number): Promise<void> {
    // No connection is made: the program would see it.
    const is_listening = (await listenersOn(port)).length > 0;
    if (this.#is_over) return;
    if (is_listening) return this.#finish();
    this.#timer = this.#clock.after(POLL_MS, () => void this.#poll(port));
  }

  #finish(): void {
    this.close();
    this.#is_ready = true;
    this.#onReady();
  }
}

/**
 * Watches the present run of `record` and notes its readiness there, then calls `onReady`. Null if the request has no
 * ready probe.
 */
export function watchReadiness(clock: Clock, record: ProcessRecord, onReady: () => void): ReadyWatch | null {
  const { ready } = record.request;
  if (!ready) return null;
  return new ReadyWatch(clock, ready, () => {
    if (!record.run) return; // seen before the start is complete: it is noted with the start
    record.run.is_ready = true;
    onReady();
  });
}
