import { closeSync } from 'node:fs';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Service } from '../../base/service.ts';
import { DIRECTIONS, type PerDirection } from '../directions.ts';
import { SharedCounts } from './counts.ts';
import type { MeteredSandbox } from './meter.ts';
import { type ByteLender, MeterError, MeterHandle } from './meter-handle.ts';
import type { ByteRate } from './token-bucket.ts';
import type { TeamRate } from './token-pool.ts';

/** Time from a failure of the meter until its restart. */
const RESTART_MS = 250;

/** The dependencies of `Metering`. */
export interface MeteringParts {
  lender: ByteLender;
  /** `--quota-fail-open`. */
  is_fail_open: boolean;
  clock: Clock;
  log: Log;
}

/**
 * Keeps this node's meter running: after a failure its thread is restarted with the queues that were open. Meanwhile
 * the kernel drops metered packets, so nothing passes unmetered and connections survive.
 */
export class Metering implements Service {
  readonly #parts: MeteringParts;
  readonly #open = new Map<string, MeteredSandbox>();
  #meter: MeterHandle | null = null;
  #restart: Timer | null = null;
  #failure: string | null = null;
  #is_started = false;
  #is_stopped = false;

  constructor(parts: MeteringParts) {
    this.#parts = parts;
  }

  /** Why no meter is running; null if one is. */
  get failure(): string | null {
    return this.#failure;
  }

  /** Rejects if the thread cannot start, for example because its library is missing. */
  async start(): Promise<void> {
    const { lender, is_fail_open, clock } = this.#parts;
    const meter = new MeterHandle({
      lender,
      is_fail_open,
      clock,
      onEnded: (error) => this.#ended(meter, error),
    });
    this.#meter = meter;
    await meter.start();
    for (const sandbox of this.#open.values()) await this.#openAgain(meter, sandbox);
    this.#failure = null;
    this.#is_started = true;
  }

  /** Closes all queues. Idempotent. */
  async stop(): Promise<void> {
    this.#is_stopped = true;
    this.#restart?.cancel();
    await this.#meter?.stop();
  }

  /**
   * Opens a sandbox's queues; if no meter is running, the next one opens them. Rejects with MeterError if they cannot
   * be opened.
   */
  async open(sandbox: MeteredSandbox): Promise<void> {
    this.#open.set(sandbox.sandbox_id, sandbox);
    try {
      await this.#meter?.attach(sandbox);
    } catch (error) {
      if (!(error instanceof MeterError)) return;
      this.#open.delete(sandbox.sandbox_id);
      throw error;
    }
  }

  /** Closes a sandbox's queues. With `is_free`, waiting packets pass because no limit applies any more. */
  async close(sandbox_id: string, is_free: boolean): Promise<void> {
    const sandbox = this.#open.get(sandbox_id);
    if (!sandbox) return;
    this.#open.delete(sandbox_id);
    try {
      await this.#meter?.detach(sandbox_id, is_free);
    } catch {
      closeLeft(sandbox);
    }
  }

  /** Changes a sandbox's own limits. */
  limit(sandbox_id: string, limits: PerDirection<ByteRate | null>): void {
    const sandbox = this.#open.get(sandbox_id);
    if (!sandbox) return;
    sandbox.limits = limits;
    this.#meter?.limit(sandbox_id, limits);
  }

  /** Changes a team's limits. */
  limitTeam(team_id: string, rates: PerDirection<TeamRate | null>): void {
    for (const sandbox of this.#open.values()) if (sandbox.team_id === team_id) sandbox.team_rates = rates;
    for (const direction of DIRECTIONS) this.#meter?.limitTeam(team_id, direction, rates[direction]);
  }

  #ended(meter: MeterHandle, error: Error): void {
    if (meter !== this.#meter) return;
    for (const sandbox of this.#open.values()) closeLeft(sandbox);
    if (this.#is_stopped || !this.#is_started) return;
    this.#failure = `the network meter failed and is being restarted: ${error.message}`;
    this.#parts.log.error({ err: error }, 'the network meter failed and is being restarted');
    this.#restart = this.#parts.clock.after(RESTART_MS, () => void this.#startAgain());
  }

  async #startAgain(): Promise<void> {
    try {
      await this.start();
    } catch (error) {
      // The end of its thread starts the next one.
      this.#parts.log.error({ err: error }, 'the network meter cannot start');
    }
  }

  /** One sandbox whose namespace is broken does not keep the others waiting. */
  async #openAgain(meter: MeterHandle, sandbox: MeteredSandbox): Promise<void> {
    try {
      await meter.attach(sandbox);
    } catch (error) {
      if (!(error instanceof MeterError)) throw error;
      const { sandbox_id } = sandbox;
      this.#parts.log.error({ err: error, sandbox_id }, "a sandbox's packet queues cannot be opened again");
    }
  }
}

/** Closes the queue that an ended thread left open, so that the next one can open it. */
function closeLeft({ memory }: MeteredSandbox): void {
  const counts = new SharedCounts(memory);
  const fd = counts.fd;
  counts.fd = null;
  if (fd === null) return;
  try {
    closeSync(fd);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBADF') throw error;
  }
}
