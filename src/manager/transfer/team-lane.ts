import type { Clock, Timer } from '../../base/clock.ts';
import type { Reservation } from '../../network/authority.ts';
import { TokenPool } from '../../network/meter/token-pool.ts';

/** Bytes that wait for tokens. */
export interface WaitingBytes {
  bytes: number;
  /** Of a webhook: when its request began, in ms of the monotonic clock; null for all else. */
  webhook_since_ms: number | null;
}

/** A wait for tokens. */
export interface TokenWait {
  /** True once the bytes may pass; false if the wait was given up. */
  granted: Promise<boolean>;
  /** Gives it up. Has no effect once it was granted. */
  cancel(): void;
}

interface Waiter extends WaitingBytes {
  settle: (is_granted: boolean) => void;
}

/** What a `TeamLane` works with. */
export interface TeamLaneParts {
  bytes_per_second: number;
  is_fail_open: boolean;
  clock: Clock;
  /** Reserves bytes from the team's bucket; never rejects. */
  reserve: (bytes: number) => Promise<Reservation>;
  /** Called when nobody waits, and no tokens are left here. */
  onRest: () => void;
}

/**
 * The bytes of one team that wait for the tokens of its rate. Webhooks and all else take turns. Of webhooks the request that
 * began first passes first, to its end: attempts have a time limit, and where all of them crept, none would keep it. All else
 * passes in the order of waiting, a piece of each connection at a time.
 */
export class TeamLane {
  readonly #parts: TeamLaneParts;
  readonly #pool: TokenPool;
  readonly #webhooks: Waiter[] = [];
  readonly #others = new Set<Waiter>();
  #is_webhooks_turn = true;
  #timer: Timer | null = null;

  constructor(parts: TeamLaneParts) {
    this.#parts = parts;
    const { bytes_per_second, is_fail_open, reserve } = parts;
    const requests = {
      reserve: (bytes: number) => void this.#reserve(bytes),
      giveBack: (bytes: number) => void reserve(-bytes),
    };
    this.#pool = new TokenPool({ bytes_per_second, version: 1 }, requests, is_fail_open);
  }

  /** Waits until bytes may pass; they are then used. */
  wait(waiting: WaitingBytes): TokenWait {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter = { ...waiting, settle: resolve };
    this.#add(waiter);
    this.#turn();
    const cancel = () => {
      if (!this.#remove(waiter)) return;
      resolve(false);
      this.#turn();
    };
    return { granted: promise, cancel };
  }

  async #reserve(bytes: number): Promise<void> {
    this.#pool.answer(await this.#parts.reserve(bytes), this.#nowUs());
    this.#turn();
  }

  /** Lets pass what may, and sets the timer for what is due next. */
  #turn(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (let next = this.#next(); next; next = this.#next()) {
      const now_us = this.#nowUs();
      if (this.#pool.has(next.bytes, now_us) !== 'yes') break;
      this.#pool.take(next.bytes, now_us);
      this.#remove(next);
      this.#is_webhooks_turn = next.webhook_since_ms === null;
      next.settle(true);
      if (next.webhook_since_ms === null || !this.#next()) continue;
      // Its next piece comes first, and is not here yet.
      setImmediate(() => this.#turn());
      return;
    }
    const { wake_us } = this.#pool;
    if (wake_us !== Number.POSITIVE_INFINITY) {
      const delay_ms = Math.max(0, Math.ceil((wake_us - this.#nowUs()) / 1_000));
      this.#timer = this.#parts.clock.after(delay_ms, () => this.#wake());
    } else if (this.#pool.is_at_rest && !this.#next()) this.#parts.onRest();
  }

  #wake(): void {
    if (!this.#next()) this.#pool.tick(this.#nowUs());
    this.#turn();
  }

  #next(): Waiter | undefined {
    const [webhook] = this.#webhooks;
    const [other] = this.#others;
    return this.#is_webhooks_turn ? (webhook ?? other) : (other ?? webhook);
  }

  #add(waiter: Waiter): void {
    const { webhook_since_ms } = waiter;
    if (webhook_since_ms === null) {
      this.#others.add(waiter);
      return;
    }
    const before = this.#webhooks.findLastIndex((each) => (each.webhook_since_ms ?? 0) <= webhook_since_ms);
    this.#webhooks.splice(before + 1, 0, waiter);
  }

  #remove(waiter: Waiter): boolean {
    if (this.#others.delete(waiter)) return true;
    const at = this.#webhooks.indexOf(waiter);
    if (at >= 0) this.#webhooks.splice(at, 1);
    return at >= 0;
  }

  #nowUs(): number {
    return Math.floor(this.#parts.clock.monotonicMs() * 1_000);
  }
}
