import { closeSync, writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { type Clock, runTime, type Timer } from '../../base/clock.ts';
import type { Reservation } from '../authority.ts';
import type { Direction, PerDirection } from '../directions.ts';
import type { MeteredSandbox } from './meter.ts';
import type { FromMeterThread, MeterSettings, ToMeterThread } from './thread-messages.ts';
import type { ByteRate } from './token-bucket.ts';
import type { TeamRate } from './token-pool.ts';

/** A thread that makes no step for this long is considered hung and is terminated. */
const SILENCE_MS = 5_000;
const WATCH_MS = 1_000;

/** Lends a team's bytes under the current limits. */
export interface ByteLender {
  /** Reserves bytes. Never rejects. */
  reserve(team_id: string, direction: Direction, bytes: number): Promise<Reservation>;
  /** Returns bytes that were not used. */
  giveBack(team_id: string, direction: Direction, bytes: number): void;
}

/** The dependencies of a `MeterHandle`. */
export interface MeterHandleParts {
  lender: ByteLender;
  is_fail_open: boolean;
  clock: Clock;
  /** Called when the thread has ended, by a failure or by `stop`. Its queues are still open then. */
  onEnded: (error: Error) => void;
}

/** A request that the meter thread could not carry out. */
export class MeterError extends Error {
  /** The system's error code, such as `EPERM`; null for any other error. */
  readonly code: string | null;

  constructor(message: string, code: string | null) {
    super(message);
    this.code = code;
  }
}

interface Pending {
  resolve: () => void;
  reject: (error: Error) => void;
}

/** The main thread's handle of one meter thread, from start to end. */
export class MeterHandle {
  readonly #parts: MeterHandleParts;
  readonly #worker: Worker;
  readonly #heartbeat = new SharedArrayBuffer(4);
  readonly #pending = new Map<number, Pending>();
  readonly #started: Promise<void>;
  #onStarted: Pending | null = null;
  #wake_fd: number | null = null;
  #watch: Timer;
  #last_id = 0;
  #is_ended = false;
  readonly #exited: Promise<void>;

  constructor(parts: MeterHandleParts) {
    this.#parts = parts;
    this.#started = new Promise((resolve, reject) => {
      this.#onStarted = { resolve, reject };
    });
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'cjs';
    this.#worker = new Worker(new URL(`./meter-thread.${extension}`, import.meta.url), {
      workerData: {
        is_fail_open: parts.is_fail_open,
        heartbeat: this.#heartbeat,
      } satisfies MeterSettings,
      env: {},
      // Its sockets are opened by system calls that Node does not see.
      trackUnmanagedFds: false,
      resourceLimits: { maxYoungGenerationSizeMb: 8 },
    });
    this.#worker.on('message', (message: FromMeterThread) => this.#receive(message));
    this.#worker.on('error', (error) => this.#end(error instanceof Error ? error : new Error(String(error))));
    this.#exited = new Promise((resolve) => {
      this.#worker.on('exit', (code) => {
        this.#end(new Error(`the meter thread exited with code ${code}`));
        resolve();
      });
    });
    this.#watch = runTime(parts.clock).after(WATCH_MS, () =>
      this.#checkHeartbeat(-1, runTime(parts.clock).monotonicMs()),
    );
  }

  /** Resolves when the thread runs. Rejects if it cannot start, for example because its library is missing. */
  start(): Promise<void> {
    return this.#started;
  }

  /** Opens a sandbox's queues. Rejects with MeterError. */
  attach(sandbox: MeteredSandbox): Promise<void> {
    return this.#request((id) => ({ kind: 'attach', id, sandbox }));
  }

  /**
   * Closes a sandbox's queues. With `is_free`, waiting packets pass because no limit applies any more. Rejects with
   * MeterError.
   */
  detach(sandbox_id: string, is_free: boolean): Promise<void> {
    return this.#request((id) => ({ kind: 'detach', id, sandbox_id, is_free }));
  }

  /** Changes a sandbox's own limits. */
  limit(sandbox_id: string, limits: PerDirection<ByteRate | null>): void {
    this.#post({ kind: 'limit', sandbox_id, limits });
  }

  /** Changes a team's limit. */
  limitTeam(team_id: string, direction: Direction, rate: TeamRate | null): void {
    this.#post({ kind: 'limit-team', team_id, direction, rate });
  }

  /** Ends the thread, which closes its queues; terminates it if it hangs. Idempotent. */
  async stop(): Promise<void> {
    this.#post({ kind: 'stop' });
    const timer = runTime(this.#parts.clock).after(SILENCE_MS, () => void this.#worker.terminate());
    await this.#exited;
    timer.cancel();
  }

  #request(messageOf: (id: number) => ToMeterThread): Promise<void> {
    const id = ++this.#last_id;
    return new Promise((resolve, reject) => {
      if (this.#is_ended) {
        reject(new Error('the meter thread has ended'));
        return;
      }
      this.#pending.set(id, { resolve, reject });
      this.#post(messageOf(id));
    });
  }

  /** The thread reads messages only when it is woken. */
  #post(message: ToMeterThread): void {
    if (this.#is_ended) return;
    this.#worker.postMessage(message);
    if (this.#wake_fd !== null) writeSync(this.#wake_fd, ONE);
  }

  #receive(message: FromMeterThread): void {
    switch (message.kind) {
      case 'started':
        this.#wake_fd = message.wake_fd;
        // Messages posted before the descriptor was known could not wake the thread.
        writeSync(message.wake_fd, ONE);
        this.#onStarted?.resolve();
        break;
      case 'done':
        this.#pending.get(message.id)?.resolve();
        this.#pending.delete(message.id);
        break;
      case 'failed':
        this.#pending.get(message.id)?.reject(new MeterError(message.message, message.code));
        this.#pending.delete(message.id);
        break;
      case 'reserve':
        void this.#reserve(message.team_id, message.direction, message.bytes);
        break;
      case 'give-back':
        this.#parts.lender.giveBack(message.team_id, message.direction, message.bytes);
        break;
    }
  }

  async #reserve(team_id: string, direction: Direction, bytes: number): Promise<void> {
    const reservation = await this.#parts.lender.reserve(team_id, direction, bytes);
    this.#post({ kind: 'answer', team_id, direction, reservation });
  }

  #checkHeartbeat(last: number, since_ms: number): void {
    const now_ms = runTime(this.#parts.clock).monotonicMs();
    const beats = Atomics.load(new Int32Array(this.#heartbeat), 0);
    const is_silent = beats === last;
    if (is_silent && now_ms - since_ms >= SILENCE_MS) {
      void this.#worker.terminate();
      return;
    }
    const changed_ms = is_silent ? since_ms : now_ms;
    this.#watch = runTime(this.#parts.clock).after(WATCH_MS, () => this.#checkHeartbeat(beats, changed_ms));
  }

  #end(error: Error): void {
    if (this.#is_ended) return;
    this.#is_ended = true;
    this.#watch.cancel();
    if (this.#wake_fd !== null) closeSync(this.#wake_fd);
    this.#wake_fd = null;
    this.#onStarted?.reject(error);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    this.#parts.onEnded(error);
  }
}

/** Adds one to the eventfd counter that wakes the thread. */
const ONE = Buffer.from(new BigUint64Array([1n]).buffer);
