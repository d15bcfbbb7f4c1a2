import { inParallel } from '../../base/in-parallel.ts';
import type { Job } from '../../base/schedule.ts';
import { reasonOf } from '../database/database-errors.ts';
import { Deferrals } from './deferrals.ts';
import type { Deletions } from './deletion.ts';
import type { IdempotencyStore } from './idempotency-store.ts';
import type { Operations, SandboxServices } from './operations.ts';
import type { ManagedSandboxRow } from './sandbox-store.ts';
import type { Sandboxes } from './sandboxes.ts';

/** Times that are set while nobody looks are found within this: a ttl holds within 1 s. */
const EXPIRY_LOOK_MS = 500;
const EXPIRED_AT_ONCE = 100;
const MORE_LOOK_MS = 50;
const RENEW_MS = 4_000;
const WATCH_MS = 5_000;
const LOOKS_AT_ONCE = 32;
const PURGE_MS = 60_000;
const PURGE_AT_ONCE = 1_000;
/** What is gone is remembered for so long. */
const KEEP_MS = 24 * 60 * 60 * 1000;

/** Pauses and deletes sandboxes whose time has come. Source: contract section 7, `ttl` and `hard_ttl`. */
export function expiryJob(services: SandboxServices, sandboxes: Sandboxes, deletions: Deletions): Job {
  const { store, clock, log } = services;
  const deferrals = new Deferrals(clock);
  /** A sandbox that does not let itself be paused holds up no other's end. */
  const under_way = new Set<string>();
  const end = async ({ sandbox_id, team_id, hard_expires_at_ms }: ManagedSandboxRow, now_ms: number) => {
    try {
      if (hard_expires_at_ms !== null && hard_expires_at_ms <= now_ms) {
        await deletions.delete(sandbox_id, team_id, { reason: 'ttl_expired', actor: null });
      } else {
        await sandboxes.pause({ sandbox_id, team_id: null }, 'ttl_expired');
      }
      deferrals.forget(sandbox_id);
    } catch (error) {
      deferrals.defer(sandbox_id);
      log.info({ sandbox_id, reason: reasonOf(error) }, 'the end of a ttl is tried again');
    } finally {
      under_way.delete(sandbox_id);
    }
  };
  return {
    name: 'expiry',
    async run() {
      const now_ms = clock.wallMs();
      const others = [...deferrals.current(), ...under_way];
      const { rows, next_ms } = await store.expired(now_ms, EXPIRED_AT_ONCE, others);
      for (const row of rows) {
        under_way.add(row.sandbox_id);
        void end(row, now_ms);
      }
      if (rows.length === EXPIRED_AT_ONCE) return MORE_LOOK_MS;
      return Math.max(0, Math.min(EXPIRY_LOOK_MS, (next_ms ?? Number.POSITIVE_INFINITY) - clock.wallMs()));
    },
  };
}

/** Says that what is under way here is being carried out still. */
export function renewalJob(operations: Operations): Job {
  return {
    name: 'renewal',
    async run() {
      await operations.renew();
      return RENEW_MS;
    },
  };
}

/** Finds sandboxes whose runtime has died. Source: contract section 7, status `failed`. */
export function watchJob({ store, runtime, metering, clock, log }: SandboxServices): Job {
  const look = async ({ sandbox_id }: ManagedSandboxRow) => {
    if (await runtime.isAlive(sandbox_id)) return;
    await store.write(async (tx) => {
      const changes = { status: 'failed', updated_at_ms: clock.wallMs() } as const;
      if (!(await store.changeIdle(tx, sandbox_id, ['running', 'paused'], changes))) return;
      await metering.ended(tx, sandbox_id, 'last_seen');
      log.warn({ sandbox_id }, "a sandbox's runtime has died");
    });
  };
  return {
    name: 'watch',
    async run() {
      await inParallel(await store.listUp(), LOOKS_AT_ONCE, look);
      return WATCH_MS;
    },
  };
}

/** Forgets what was kept long enough, and keeps room for deletions. */
export function purgeJob({ store, clock }: SandboxServices, keys: IdempotencyStore): Job {
  return {
    name: 'purge',
    async run() {
      const before_ms = clock.wallMs() - KEEP_MS;
      // What one of them is refused does not keep the other from its rows.
      const purges = [store.purge(before_ms, PURGE_AT_ONCE), keys.purge(before_ms, PURGE_AT_ONCE)];
      await Promise.allSettled(purges);
      const purged = await Promise.all(purges);
      store.restoreBallast();
      return purged.includes(PURGE_AT_ONCE) ? 0 : PURGE_MS;
    },
  };
}
