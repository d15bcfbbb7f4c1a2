import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { KeptSandbox, Runtime } from '../../runtime/runtime.ts';
import { AddressGuard } from '../../webhook/address-guard.ts';
import type { ManagerConfig } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import type { DatabaseClock } from '../database/database-clock-store.ts';
import { PositionStore } from '../database/position-store.ts';
import { replicaName } from '../database/replica.ts';
import type { Seal } from '../database/seal.ts';
import { Feed } from '../events/feed.ts';
import { ManagerOutbox } from '../outbox/manager-outbox.ts';
import { Deletions } from '../sandboxes/deletion.ts';
import { Operations } from '../sandboxes/operations.ts';
import type { LeaseMetering } from '../sandboxes/ports.ts';
import { SandboxMetrics } from '../sandboxes/sandbox-metrics.ts';
import { leaseOf } from '../sandboxes/sandbox-row.ts';
import { type ManagedSandboxRow, SandboxStore } from '../sandboxes/sandbox-store.ts';
import { UsageMeter } from '../usage/meter.ts';
import { NetworkMeter } from '../usage/network-meter.ts';
import { NetworkPositionStore } from '../usage/network-position-store.ts';
import { NO_METERING } from '../usage/usage.ts';
import { UsageStore } from '../usage/usage-store.ts';
import { restoredRow } from './orphan-record.ts';
import { OrphanStore } from './orphan-store.ts';
import { UnseenSandboxes } from './unseen.ts';

/** What an operator settles sandboxes with. */
export interface OrphanVerbParts {
  config: ManagerConfig;
  database: Database;
  clock: DatabaseClock;
  /** Not started: only what it has recorded is read. */
  runtime: Runtime;
  seal: Seal;
  log: Log;
}

/** What an operator does to sandboxes that are here or recorded, and not both. */
export interface OrphanVerbs {
  /** Records an orphan; gives what could not be known of it. Throws StartError. */
  adopt(sandbox_id: string): Promise<string[]>;
  /** Records it as deleted, so that a manager ends it and hands over what it had not delivered. Throws StartError. */
  end(sandbox_id: string): Promise<string[]>;
  /** Deletes a recorded one of which nothing is here, whose cleanup then looks for nothing. Throws StartError. */
  giveUp(sandbox_id: string): Promise<void>;
}

/** An owner that no replica has: its operations are taken over at once. */
const NOBODY = 'sandbox-manager orphans';
const API = { reason: 'api', actor: null } as const;

/**
 * The parts of a manager that record and delete sandboxes, without those that run them: all that is left to do is in the
 * database, and done by whichever manager runs, or the next that starts.
 */
export async function orphanVerbs({
  config,
  database,
  clock,
  runtime,
  seal,
  log,
}: OrphanVerbParts): Promise<OrphanVerbs> {
  const replica = replicaName();
  // As at the start of a manager: the database may have been restored.
  await new PositionStore(database).advance();
  const lease = { runtime, clock, region_id: config.region, cluster_id: runtime.cluster_id };
  const meter = config.metering ? new UsageMeter({ ...lease, store: new UsageStore(database) }) : null;
  const { networks } = runtime;
  const traffic = new NetworkMeter({ store: new NetworkPositionStore(database), networks, clock, meter });
  const guard = new AddressGuard(config.allow_webhook_cidr);
  const deletion_outbox = new ManagerOutbox({ database, clock, log, seal, guard, replica });
  const feed = await Feed.open({ database, clock, log, runtime, seal });
  const store = new SandboxStore(database);
  const metering: LeaseMetering = meter ?? NO_METERING;
  const services = {
    ...{ clock, log, store, runtime, seal, replica, traffic, deletion_outbox, feed },
    metrics: new SandboxMetrics(),
    sight: new UnseenSandboxes(log),
    metering,
  };
  const deletions = new Deletions(services, new Operations(services));
  // The cleanup is a manager's.
  deletions.stop();
  const orphans = new OrphanStore(database);

  const keptOf = async (sandbox_id: string) => {
    const kept = await runtime.kept(sandbox_id);
    if (kept === null) throw new StartError(`${sandbox_id}: nothing of it is here`, 1);
    return kept;
  };

  /** Records a sandbox with these changes, which may depend on whether it was deleted before; gives what could not be known. */
  const record = async (
    sandbox_id: string,
    kept: KeptSandbox,
    changes: (was_deleted: boolean) => Partial<ManagedSandboxRow>,
  ) => {
    const { row, unknown } = restoredRow(sandbox_id, kept, seal, clock.wallMs());
    const made = await store.write(async (tx) => {
      const found = await store.find(tx, sandbox_id, null);
      if (found !== null) throw new StartError(`${sandbox_id} is recorded: it is no orphan`, 1);
      const recorded = { ...row, ...changes(await orphans.forgetDeleted(tx, sandbox_id)) };
      await store.insert(tx, recorded);
      if (recorded.operation === 'claiming') return recorded;
      await feed.expect(tx, sandbox_id);
      if (recorded.status === 'running') await metering.began(tx, leaseOf(recorded), row.updated_at_ms);
      return recorded;
    });
    return { made, unknown };
  };

  const abandoned = { operation_owner: NOBODY, operation_until_ms: 0 };
  return {
    async adopt(sandbox_id) {
      const kept = await keptOf(sandbox_id);
      if (kept.state === 'incomplete')
        throw new StartError(`${sandbox_id} was never complete: end it instead`, 1);
      return (await record(sandbox_id, kept, () => ({}))).unknown;
    },

    async end(sandbox_id) {
      const kept = await keptOf(sandbox_id);
      // No caller has seen one that was never complete: a manager undoes it as it does an abandoned claim.
      const is_claim = kept.state === 'incomplete';
      const claiming = { status: 'starting', operation: 'claiming', ...abandoned } as const;
      // Of one that was deleted before, `sandbox.deleted` is delivered already.
      const cleaning = { status: 'terminating', operation: 'cleaning', ...abandoned } as const;
      const { made, unknown } = await record(sandbox_id, kept, (was_deleted) =>
        is_claim ? claiming : was_deleted ? cleaning : {},
      );
      if (made.operation !== null) return is_claim ? [] : unknown;
      await deletions.delete(sandbox_id, made.team_id, API);
      return kept.note === null ? [...unknown, 'where its events go: they are not delivered'] : unknown;
    },

    async giveUp(sandbox_id) {
      const row = await store.find(store.db, sandbox_id, null);
      if (row === null) throw new StartError(`there is no sandbox ${sandbox_id}`, 1);
      if ((await runtime.list()).includes(sandbox_id)) {
        throw new StartError(`${sandbox_id} is here: delete it instead`, 1);
      }
      const failed = { status: 'failed', updated_at_ms: clock.wallMs() } as const;
      await store.write(async (tx) => {
        if (!(await store.changeIdle(tx, sandbox_id, ['running', 'paused'], failed))) return;
        await metering.ended(tx, sandbox_id, 'last_seen');
      });
      await deletions.delete(sandbox_id, row.team_id, API);
      if ((await orphans.giveUp(sandbox_id)) === null) {
        throw new StartError(`${sandbox_id}: another operation is under way; try again`, 1);
      }
    },
  };
}
