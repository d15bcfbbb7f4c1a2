import { readFile } from 'node:fs/promises';
import type { Clock, Timer } from '../base/clock.ts';
import type { OutputStream, ReadyProbe } from '../contract/processes.ts';

/** How often the sockets are looked at while a port is waited for. */
const POLL_MS = 50;
const LISTENING = '0A';

/** Watches one run of a process until it is ready; then calls `ready` once. */
export class ReadyWatch {
  readonly #clock: Clock;
  readonly #ready: () => void;
  readonly #text: Buffer | null;
  /** Ends of what was written that may begin the text. */
  readonly #ends: Record<OutputStream, Buffer> = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #is_over = false;
  #is_ready = false;
  #timer: Timer | null = null;

  constructor(clock: Clock, probe: ReadyProbe, ready: () => void) {
    this.#clock = clock;
    this.#ready = ready;
    this.#text = 'log' in probe ? Buffer.from(probe.log) : null;
    if ('port' in probe) void this.#poll(probe.port);
  }

  /** Whether it was ready: that may be seen before the start of the process is known to be done. */
  get is_ready(): boolean {
    return this.#is_ready;
  }

  /** Looks for the text in a piece of output, also where it is spread over pieces. */
  onOutput(stream: OutputStream, data: Buffer): void {
    if (this.#is_over || !this.#text) return;
    const seen = Buffer.concat([this.#ends[stream], data]);
    if (seen.includes(this.#text)) this.#finish();
    this.#ends[stream] = Buffer.from(seen.subarray(Math.max(0, seen.length - this.#text.length + 1)));
  }

  close(): void {
    this.#is_over = true;
    this.#timer?.cancel();
  }

  async #poll(port: number): Promise<void> {
    const is_listening = await isListening(port);
    if (this.#is_over) return;
    if (is_listening) return this.#finish();
    this.#timer = this.#clock.after(POLL_MS, () => void this.#poll(port));
  }

  #finish(): void {
    this.close();
    this.#is_ready = true;
    this.#ready();
  }
}

/** Whether something listens on this TCP port of the sandbox, on any address. Nothing connects to it. */
async function isListening(port: number): Promise<boolean> {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(table, 'latin1').catch(() => '');
    const is_listening = text.split('\n').some((line) => {
      const [, local, , state] = line.trim().split(/\s+/);
      return state === LISTENING && local?.endsWith(`:${hex}`);
    });
    if (is_listening) return true;
  }
  return false;
}
