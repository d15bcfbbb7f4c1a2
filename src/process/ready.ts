import { type Clock, sleep } from '../base/clock.ts';
import { listeningPorts } from '../base/linux/sockets.ts';
import type { ReadyProbe } from '../contract/processes.ts';
import type { OutputStream } from '../contract/words.ts';
import type { ProcessRecord } from './record.ts';

/** How often the sockets are read while a port is awaited. */
const POLL_MS = 50;

/** However long reading them takes, they are read for no more than this part of the time. */
const POLL_SHARE = 0.2;

interface PortWatch {
  port: number;
  onListening: () => void;
}

/** Ports that are awaited: all of a clock's share the reading of the sockets. */
const awaited = new WeakMap<Clock, Set<PortWatch>>();

/** Calls `onListening` once something listens on `port`, until the returned function is called. */
function watchPort(clock: Clock, port: number, onListening: () => void): () => void {
  const watches = awaited.get(clock) ?? new Set();
  const watch = { port, onListening };
  watches.add(watch);
  awaited.set(clock, watches);
  if (watches.size === 1) void pollPorts(clock, watches);
  return () => watches.delete(watch);
}

/** Looks until no port is awaited. No connection is made: the program would see it. */
async function pollPorts(clock: Clock, watches: Set<PortWatch>): Promise<void> {
  while (watches.size > 0) {
    const begun_ms = clock.monotonicMs();
    const ports = await listeningPorts();
    for (const watch of watches) {
      if (ports.has(watch.port) && watches.delete(watch)) watch.onListening();
    }
    const took_ms = clock.monotonicMs() - begun_ms;
    if (watches.size > 0) await sleep(clock, Math.max(POLL_MS, took_ms / POLL_SHARE));
  }
  awaited.delete(clock);
}

/** Watches one run of a process until it is ready; then calls `onReady` once. */
export class ReadyWatch {
  readonly #onReady: () => void;
  readonly #text: Buffer | null;
  /** The end of each stream so far, in which the text may begin. */
  readonly #ends: Record<OutputStream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #is_over = false;
  #is_ready = false;
  readonly #stop: () => void;

  /** A probe for a port begins at once. */
  constructor(clock: Clock, probe: ReadyProbe, onReady: () => void) {
    this.#onReady = onReady;
    this.#text = probe.log === undefined ? null : Buffer.from(probe.log);
    this.#stop = probe.port === undefined ? () => {} : watchPort(clock, probe.port, () => this.#finish());
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
    this.#stop();
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
