import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import { systemErrorText } from '../../base/linux/errno.ts';
import type { Log } from '../../base/log.ts';
import { type Backoff, backoffMs } from '../../contract/backoff.ts';
import { RATE_TIMEOUT_MS } from '../../contract/defaults.ts';
import { StartError } from '../../contract/errors.ts';
import type { RatePolicy } from '../../contract/quotas.ts';
import { AnswerWatch } from './answer-watch.ts';
import type { Bucket, DrawResult } from './bucket.ts';
import { BUCKET_SCRIPT } from './bucket-script.ts';
import {
  type BucketName,
  DEBT_MAX,
  drawn,
  type RateAuthority,
  type RateDecision,
  type Reserved,
  reservedFrom,
  type Unreachable,
} from './rate-authority.ts';

const KEY_PREFIX = 'sandbox-manager:quota';
/** A connection on which the server stays silent is replaced after this time. */
const SILENCE_MS = 1_000;
const PROBE_INTERVAL_MS = 500;
const RECONNECT: Backoff = { base_ms: 25, max_ms: 500 };
/** How long a start waits for the first connection. Without one the start continues, and draws are unreachable. */
const FIRST_CONNECTION_MS = 1_000;

const PROBE_POLICY = { limit_value: 1, interval_ms: 1, burst_value: 1 };
/** Added to the time in which a bucket fills before its key expires, because clocks may step. */
const FORGET_MS = 60_000;
const FORGET_MAX_MS = 10 ** 12;
/** The character `1` in the script's answer. */
const ADMITTED = 0x31;

/** How to reach the server, and the region whose quotas it holds. */
export interface RedisAuthorityOptions {
  url: string;
  region_id: string;
  log: Log;
  clock?: Clock;
  /** Replaces the script, for tests that control the server's time. */
  script?: string;
}

/**
 * Rate quotas of all replicas of a region in Redis or Valkey. A draw never waits for a connection. If the server does
 * not answer within 100 ms, every draw is `unreachable` at once until a probe succeeds.
 *
 * | State | Entered when | Left when |
 * |---|---|---|
 * | unreachable | created; an error, a closed connection, or an answer later than 100 ms | a draw or a probe succeeds |
 * | reachable | a draw or a probe succeeds | an error, a closed connection, or a late answer |
 */
export class RedisAuthority implements RateAuthority {
  readonly kind = 'redis';
  readonly #redis: Redis;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #prefix: string;
  readonly #watch: AnswerWatch;
  readonly #script: string;
  readonly #sha: string;
  #is_reachable = false;
  #closed = false;
  #next_probe: Timer | null = null;
  #reason = `no connection within ${FIRST_CONNECTION_MS} ms`;

  private constructor({
    url,
    region_id,
    log,
    clock = systemClock,
    script = BUCKET_SCRIPT,
  }: RedisAuthorityOptions) {
    this.#clock = clock;
    this.#log = log;
    this.#prefix = `${KEY_PREFIX}:${encodeURIComponent(region_id)}`;
    this.#script = script;
    this.#sha = createHash('sha1').update(script).digest('hex');
    this.#redis = new Redis(url, {
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: SILENCE_MS,
      socketTimeout: SILENCE_MS,
      retryStrategy: (attempt) => backoffMs(attempt, RECONNECT),
    });
    this.#watch = new AnswerWatch(clock, RATE_TIMEOUT_MS, () => this.#leave());
    this.#redis.on('error', (error: Error) => this.#lost(redisReason(error)));
    this.#redis.on('close', () => this.#lost(this.#reason));
    this.#redis.on('ready', () => void this.#probe());
  }

  /** Waits up to 1 s for the first connection. Throws StartError if `--redis` is not a Redis URL; an unreachable server is no error. */
  static async open(options: RedisAuthorityOptions): Promise<RedisAuthority> {
    const is_address = URL.canParse(options.url) && /^rediss?:$/.test(new URL(options.url).protocol);
    if (!is_address)
      throw new StartError('--redis must be a URL such as redis://host:6379 or rediss://host:6379', 2);
    const authority = new RedisAuthority(options);
    await authority.#firstConnection();
    if (!authority.is_reachable) authority.#reportLost();
    return authority;
  }

  /** Whether the last draw or probe was answered in time. */
  get is_reachable(): boolean {
    return this.#is_reachable;
  }

  /** Draws tokens from a team's bucket in one round trip. Never rejects. */
  async draw(name: BucketName, policy: RatePolicy, requested: number): Promise<RateDecision> {
    const step = await this.#step(name, policy, requested, 0);
    return 'outcome' in step ? step : drawn(step.bucket, step.is_admitted, requested);
  }

  /** Reserves tokens of a team's bucket in one round trip. Never rejects. */
  async reserve(name: BucketName, policy: RatePolicy, requested: number): Promise<Reserved | Unreachable> {
    const step = await this.#step(name, policy, requested, DEBT_MAX);
    return 'outcome' in step ? step : reservedFrom(step.bucket, step.is_admitted);
  }

  /** Disconnects and stops probing. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#next_probe?.cancel();
    this.#watch.stop();
    this.#redis.disconnect();
  }

  async #step(
    { team_id, dimension }: BucketName,
    policy: RatePolicy,
    requested: number,
    debt_max: number,
  ): Promise<DrawResult | Unreachable> {
    const key = `${this.#prefix}:${encodeURIComponent(team_id)}:${dimension}`;
    try {
      const answer = await this.#request(key, policy, requested, debt_max);
      this.#reached();
      return { bucket: bucketOf(answer, policy), is_admitted: answer[48] === ADMITTED };
    } catch (error) {
      this.#lost(redisReason(error as Error));
      return { outcome: 'unreachable', reason: this.#reason };
    }
  }

  /** Runs the script; rejects if the server does not answer in time, or with an error. */
  async #request(key: string, policy: RatePolicy, requested: number, debt_max: number): Promise<Buffer> {
    const { limit_value, interval_ms, burst_value } = policy;
    const args = [1, key, limit_value, interval_ms, burst_value, requested, forgetMs(policy), debt_max];
    this.#watch.asked();
    try {
      return (await this.#redis.callBuffer('evalsha', this.#sha, ...args)) as Buffer;
    } catch (error) {
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return (await this.#redis.callBuffer('eval', this.#script, ...args)) as Buffer;
    } finally {
      this.#watch.answered();
    }
  }

  /** Closes a connection whose answers come too late, which rejects all pending draws at once. */
  #leave(): void {
    this.#lost(`no answer within ${RATE_TIMEOUT_MS} ms`);
    this.#redis.stream?.destroy();
  }

  #reached(): void {
    if (this.#is_reachable) return;
    this.#is_reachable = true;
    this.#reason = 'the connection was closed';
    this.#log.info('the rate authority answers');
  }

  #lost(reason: string): void {
    if (reason !== NOT_CONNECTED) this.#reason = reason;
    if (this.#is_reachable) this.#reportLost();
    this.#is_reachable = false;
    if (!this.#closed) this.#next_probe ??= this.#clock.after(PROBE_INTERVAL_MS, () => void this.#probe());
  }

  #reportLost(): void {
    this.#log.error({ reason: this.#reason }, 'the rate authority does not answer');
  }

  /** Checks whether the server answers again, even without draws. */
  async #probe(): Promise<void> {
    this.#next_probe?.cancel();
    this.#next_probe = null;
    const { stream } = this.#redis;
    try {
      await this.#request(`${this.#prefix}::probe`, PROBE_POLICY, 1, 0);
      this.#reached();
    } catch (error) {
      const { message } = error as Error;
      // After a failover the name may lead to another server.
      if (message.startsWith('READONLY')) stream?.destroy();
      this.#lost(redisReason(error as Error));
    }
  }

  #firstConnection(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(FIRST_CONNECTION_MS, resolve);
      this.#redis.once('ready', () => {
        void this.#probe().then(() => {
          timer.cancel();
          resolve();
        });
      });
    });
  }
}

/** What the library says of a command that it could not send: the connection's own error says more. */
const NOT_CONNECTED = 'not connected';
const UNSENT = /^(Stream isn't writeable|Connection is closed|Reached the max retries)/;

/** Why the server could not be used: what the network's error means, or the server's own words. */
function redisReason(error: Error): string {
  if (UNSENT.test(error.message)) return NOT_CONNECTED;
  return systemErrorText(error) ?? error.message;
}

/** The bucket in the script's answer. */
function bucketOf(answer: Buffer, policy: RatePolicy): Bucket {
  const [tokens, remainder, updated_ms] = [0, 8, 16].map((at) => answer.readDoubleBE(at));
  return { tokens, remainder, updated_ms, ...policy } as Bucket;
}

/** Time to live of a bucket's key: after it an empty bucket is full again. */
function forgetMs({ limit_value, interval_ms, burst_value }: RatePolicy): number {
  if (limit_value === 0) return FORGET_MAX_MS;
  return Math.min(FORGET_MAX_MS, Math.ceil((burst_value / limit_value) * interval_ms) + FORGET_MS);
}
