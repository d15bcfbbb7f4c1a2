import { Deferrals } from '../../base/deferrals.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Job } from '../../base/schedule.ts';
import { ApiError } from '../../contract/errors.ts';
import { reasonOf } from '../database/database-errors.ts';
import type { Deletions } from './deletion.ts';
import type {
  ExpiredSandbox,
  HousekeepingStore,
  OperationInProgress,
  UpSandbox,
} from './housekeeping-store.ts';
import type { IdempotencyStore } from './idempotency-store.ts';
import type { OperationRecovery } from './operation-recovery.ts';
import type { Operations } from './operations.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { SandboxServices } from './services.ts';
import type { Uses } from './uses.ts';

/** The longest wait between two looks for expired sandboxes: a ttl that was set meanwhile holds within 1 s. */
const EXPIRY_POLL_MS = 500;
const EXPIRED_AT_ONCE = 100;
/** The wait while more sandboxes have expired than one look returns. */
const EXPIRY_BACKLOG_POLL_MS = 50;
const RENEW_MS = 4_000;
/** At most 10 s of running time are lost if a manager dies. */
const WATCH_MS = 5_000;
/** How often abandoned operations are looked for. */
const RECOVERY_MS = 2_000;
const CHECKS_AT_ONCE = 32;
/** Asks every daemon, which a look does not: seldom, and few at once. */
const COMPARISON_MS = 6 * 60 * 60 * 1000;
const COMPARISON_AGAIN_MS = 60_000;
const COMPARED_AT_ONCE = 8;
const PURGE_MS = 60_000;
const PURGE_AT_ONCE = 1_000;
/** How long the row of a sandbox that is gone, and the answer to an idempotency key, are kept. */
const KEEP_MS = 24 * 60 * 60 * 1000;

/** What the expiry job uses of the manager. */
export interface ExpiryParts {
  services: Pick<SandboxServices, 'clock' | 'log'>;
  housekeeping: HousekeepingStore;
  sandboxes: Sandboxes;
  deletions: Deletions;
  uses: Pick<Uses, 'isInUse'>;
}

/**
 * Pauses and deletes sandboxes whose ttl, idle time or hard ttl has expired. Source: contract section 7, `ttl`,
 * `hard_ttl` and `idle_ttl`.
 */
export function expiryJob({
  services: { clock, log },
  housekeeping: store,
  sandboxes,
  deletions,
  uses,
}: ExpiryParts): Job {
  const deferrals = new Deferrals(clock);
  /** Not awaited: a sandbox that cannot be paused must not delay the others. */
  const in_progress = new Set<string>();
  const expire = async (row: ExpiredSandbox) => {
    const { sandbox_id, team_id, now_ms } = row;
    const isPast = (at_ms: number | null) => at_ms !== null && at_ms <= now_ms;
    try {
      if (isPast(row.hard_expires_at_ms)) {
        await deletions.delete(sandbox_id, team_id, { reason: 'ttl_expired', actor: null });
      } else if (isPast(row.expires_at_ms)) {
        await sandboxes.pause({ sandbox_id, team_id: null }, 'ttl_expired');
      } else if (!uses.isInUse(sandbox_id)) {
        await pauseIdle(sandboxes, sandbox_id, now_ms);
      }
      deferrals.forget(sandbox_id);
    } catch (error) {
      deferrals.defer(sandbox_id);
      log.info(
        { sandbox_id, reason: reasonOf(error) },
        'an expired sandbox could not be paused or deleted: it will be retried',
      );
    } finally {
      in_progress.delete(sandbox_id);
    }
  };
  return {
    name: 'expiry',
    async run() {
      const excluded = [...deferrals.current(), ...in_progress];
      const { rows, next_in_ms } = await store.expired(clock.moment(), EXPIRED_AT_ONCE, excluded);
      for (const row of rows) {
        in_progress.add(row.sandbox_id);
        void expire(row);
      }
      if (rows.length === EXPIRED_AT_ONCE) return EXPIRY_BACKLOG_POLL_MS;
      return Math.min(EXPIRY_POLL_MS, next_in_ms ?? EXPIRY_POLL_MS);
    },
  };
}

/** Pauses a sandbox unless somebody has used it in the meantime. */
async function pauseIdle(sandboxes: Sandboxes, sandbox_id: string, now_ms: number): Promise<void> {
  try {
    await sandboxes.pause({ sandbox_id, team_id: null }, 'idle_ttl_expired', now_ms);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
  }
}

/** Renews the leases of the operations that this replica is carrying out. */
export function renewalJob(operations: Operations): Job {
  return {
    name: 'renewal',
    async run() {
      await operations.renew();
      return RENEW_MS;
    },
  };
}

/** What the watch job uses of the manager. */
type WatchJobServices = Pick<
  SandboxServices,
  'store' | 'runtime' | 'metering' | 'traffic' | 'sight' | 'clock' | 'log'
>;

/**
 * Marks sandboxes as failed whose runtime has died, tells of those of which nothing is in sight, and until when all others ran. Source: contract
 * section 7, status `failed`, and "What runs and what is recorded".
 */
export function watchJob(
  { store: sandboxes, runtime, metering, traffic, sight, clock, log }: WatchJobServices,
  store: HousekeepingStore,
): Job {
  const check = async ({ sandbox_id, operation }: UpSandbox, unseen: Set<string>, unknown: Set<string>) => {
    unseen.add(sandbox_id);
    const life = await runtime.liveness(sandbox_id);
    if (life === 'alive') unseen.delete(sandbox_id);
    // What an operation leaves of it is told when that ends.
    if (operation !== null) return;
    if (life === 'unknown') unknown.add(sandbox_id);
    if (life !== 'lost') return;
    const usage = await traffic.usage(sandbox_id);
    await sandboxes.write(async (tx) => {
      const changes = { status: 'failed', updated_at_ms: clock.moment().now } as const;
      const failed = await sandboxes.changeIdle(tx, sandbox_id, ['running', 'paused'], changes);
      if (!failed) return;
      await metering.ended(tx, sandbox_id, 'last_seen');
      await traffic.closed(tx, sandbox_id, usage, failed.updated_at_ms);
      log.warn({ sandbox_id }, "a sandbox's runtime has died");
    });
  };
  return {
    name: 'watch',
    async run() {
      const at_ms = clock.wallMs();
      const [up, unseen, unknown] = [new Set<string>(), new Set<string>(), new Set<string>()];
      const failures: unknown[] = [];
      for await (const rows of store.up()) {
        for (const { sandbox_id } of rows) up.add(sandbox_id);
        const checked = inParallel(rows, CHECKS_AT_ONCE, (row) => check(row, unseen, unknown));
        // A sandbox that cannot be checked does not affect the others.
        await checked.catch((error: unknown) => failures.push(error));
      }
      sight.recorded(up);
      await metering.watched(at_ms, unseen);
      if (failures.length > 0) throw failures[0];
      sight.watched(unknown);
      return WATCH_MS;
    },
  };
}

/**
 * Brings sandboxes to their recorded status that run although they are recorded as paused, or the other way round, after a
 * start and then seldom. Source: contract section 7, "What runs and what is recorded".
 */
export function comparisonJob(
  { log }: Pick<SandboxServices, 'log'>,
  store: HousekeepingStore,
  recovery: OperationRecovery,
): Job {
  return {
    name: 'comparison',
    async run() {
      let failures = 0;
      const compare = async (row: UpSandbox) => {
        if (row.operation !== null) return;
        await recovery.correct(row).catch((error) => {
          failures += 1;
          log.info(
            { sandbox_id: row.sandbox_id, reason: reasonOf(error) },
            'a sandbox could not be compared with its record: it will be retried',
          );
        });
      };
      for await (const rows of store.up()) await inParallel(rows, COMPARED_AT_ONCE, compare);
      return failures > 0 ? COMPARISON_AGAIN_MS : COMPARISON_MS;
    },
  };
}

/** Purges rows and keys that were kept long enough, and restores the disk space reserved for deletions. */
export function purgeJob(
  { store: sandboxes, clock }: Pick<SandboxServices, 'store' | 'clock'>,
  store: HousekeepingStore,
  keys: IdempotencyStore,
): Job {
  return {
    name: 'purge',
    async run() {
      const before_ms = clock.wallMs() - KEEP_MS;
      // A failure of one purge does not keep the other from its rows.
      const purges = [store.purge(before_ms, PURGE_AT_ONCE), keys.purge(before_ms, PURGE_AT_ONCE)];
      await Promise.allSettled(purges);
      const purged = await Promise.all(purges);
      sandboxes.restoreBallast();
      return purged.includes(PURGE_AT_ONCE) ? 0 : PURGE_MS;
    },
  };
}

/** What RecoveryJob uses of the manager. */
type RecoveryJobServices = Pick<SandboxServices, 'clock' | 'log' | 'store'>;

/**
 * Takes over abandoned operations of any replica and resolves them: after a start, and then every 2 s. Source:
 * contract section 7, "/readyz".
 */
export class RecoveryJob implements Job {
  readonly name = 'recovery';
  readonly #services: RecoveryJobServices;
  readonly #store: HousekeepingStore;
  readonly #operations: Operations;
  readonly #recovery: OperationRecovery;
  #is_done = false;

  constructor(
    services: RecoveryJobServices,
    store: HousekeepingStore,
    operations: Operations,
    recovery: OperationRecovery,
  ) {
    this.#services = services;
    this.#store = store;
    this.#operations = operations;
    this.#recovery = recovery;
  }

  /** True once everything that was abandoned before this replica's start is resolved or being cleaned up. */
  get is_done(): boolean {
    return this.#is_done;
  }

  /** One pass; returns the wait until the next one, in ms. */
  readonly run = async (): Promise<number> => {
    const { clock } = this.#services;
    const resolved = this.#recovery.settle();
    for await (const rows of this.#store.operations(() => clock.moment())) {
      await this.#operations.limitLeases(rows);
      const abandoned = rows.filter((row) => this.#operations.isAbandoned(row));
      resolved.push(...abandoned.map((row) => this.#takeOver(row)));
    }
    // After the start, a sandbox that does not answer must not delay the others.
    if (this.#is_done) void Promise.all(resolved).catch((error) => this.#logFailure(error));
    else await Promise.all(resolved);
    this.#is_done = true;
    return RECOVERY_MS;
  };

  #logFailure(error: Error): void {
    this.#services.log.warn(
      { reason: error.message },
      'abandoned operations could not be resolved: they will be retried',
    );
  }

  async #takeOver(row: OperationInProgress): Promise<void> {
    const lease = this.#operations.lease();
    const { store, clock } = this.#services;
    const taken = await store.takeOver(row, lease, clock.moment());
    if (taken) await this.#recovery.resume(taken, lease);
  }
}
