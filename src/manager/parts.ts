import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { labelledGauge, MetricsRegistry } from '../base/metrics.ts';
import { processMetrics } from '../base/process-metrics.ts';
import { Schedule } from '../base/schedule.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { AddressGuard } from '../webhook/address-guard.ts';
import { ClockWatch } from './clock-watch.ts';
import type { ManagerConfig } from './config/config.ts';
import type { Database } from './database/database.ts';
import { DatabaseClock } from './database/database-clock-store.ts';
import { reasonOf } from './database/database-errors.ts';
import { replicaName } from './database/replica.ts';
import type { Seal } from './database/seal.ts';
import { SettingStore } from './database/setting-store.ts';
import { Feed } from './events/feed.ts';
import { networkJob } from './network-job.ts';
import { Orphans } from './orphans/orphans.ts';
import { RecordedStore } from './orphans/recorded-store.ts';
import { UnseenSandboxes } from './orphans/unseen.ts';
import { ManagerOutbox } from './outbox/manager-outbox.ts';
import { hasMoved } from './ownership/place-check.ts';
import { Quotas } from './quotas/quotas.ts';
import { Claims } from './sandboxes/claims.ts';
import { Deletions } from './sandboxes/deletion.ts';
import { Forks } from './sandboxes/forks.ts';
import {
  comparisonJob,
  expiryJob,
  purgeJob,
  RecoveryJob,
  renewalJob,
  watchJob,
} from './sandboxes/housekeeping.ts';
import { HousekeepingStore } from './sandboxes/housekeeping-store.ts';
import { IdempotencyStore } from './sandboxes/idempotency-store.ts';
import { OperationRecovery } from './sandboxes/operation-recovery.ts';
import { Operations } from './sandboxes/operations.ts';
import type { ClaimRules } from './sandboxes/requests.ts';
import { SandboxMetrics } from './sandboxes/sandbox-metrics.ts';
import { SandboxStore } from './sandboxes/sandbox-store.ts';
import { Sandboxes } from './sandboxes/sandboxes.ts';
import type { SandboxServices } from './sandboxes/services.ts';
import { TransitionRunner } from './sandboxes/transition-runner.ts';
import { UseStore } from './sandboxes/use-store.ts';
import { Uses } from './sandboxes/uses.ts';
import type { TransferPace } from './transfer/transfer-pace.ts';
import { TransferStore } from './transfer/transfer-store.ts';
import { Transfers } from './transfer/transfers.ts';
import { Usage } from './usage/usage.ts';
import { writeProbeJob } from './write-probe.ts';

/** What a manager is built from. */
export interface ManagerParts {
  config: ManagerConfig;
  log: Log;
  /** The machine's. */
  clock: Clock;
  runtime: Runtime;
}

/** What a manager consists of, except its API. */
export type Parts = Awaited<ReturnType<typeof makeParts>>;

/** Builds the parts and connects them; none is started. Rejects if the database or the rate authority cannot be used. */
export async function makeParts(given: ManagerParts, database: Database, seal: Seal) {
  const { config, log, runtime } = given;
  const clock = await DatabaseClock.open(database, given.clock);
  const clock_watch = new ClockWatch(clock, log);
  const replica = replicaName();
  const guard = new AddressGuard(config.allow_webhook_cidr);
  const metered = { runtime, clock, region_id: config.region, cluster_id: runtime.cluster_id };
  const usage = await Usage.open(database, metered, config.metering);
  const recorded = new RecordedStore(database.db);
  const settings = new SettingStore(database.db);
  const unseen = new UnseenSandboxes(log);
  const orphans = new Orphans({
    ...{ runtime, clock, log, store: recorded },
    wasRecorded: (sandbox_id) => unseen.wasRecorded(sandbox_id),
    hasMoved: () => hasMoved(runtime, settings),
  });
  await orphans.look();
  const unrecorded = (team_id: string | null) => orphans.use(team_id);
  // The last step that reads the database, because it is the first that keeps something open.
  const quotas = await Quotas.open({ config, database, node: runtime.node, unrecorded, clock, log });
  const transfers = new Transfers({
    ...{ clock, log, windows: usage.windows, pace: await paceOf(config, quotas, clock) },
    store: new TransferStore(database),
  });
  runtime.carryBy(transfers);
  const delivery = new ManagerOutbox({ database, clock, log, seal, guard, replica, charge: transfers });
  // After the usage, which has advanced the positions in the database.
  const feed = await Feed.open({ database, clock, log, runtime, seal });
  const store = new SandboxStore(database);
  const services: SandboxServices = {
    clock,
    log,
    store,
    runtime,
    seal,
    replica,
    metrics: new SandboxMetrics(),
    sight: unseen,
    admission: quotas.admission,
    metering: usage.metering,
    traffic: usage.traffic,
    deletion_outbox: delivery,
    feed,
  };
  const keys = new IdempotencyStore(database.db);
  const housekeeping = new HousekeepingStore(database.db);
  const operations = new Operations(services);
  const deletions = new Deletions(services, operations);
  const operation_recovery = new OperationRecovery(services, operations, deletions);
  const transitions = new TransitionRunner(services, operations, operation_recovery);
  const claim_rules: ClaimRules = {
    guard,
    bandwidth: config.bandwidth,
    diskFor: (memory_mib) => quotas.node.defaultDiskMib(memory_mib),
    network: () => runtime.networks.state(),
    resourcesOf: (template) => runtime.resourcesOf(template),
  };
  return {
    metrics: metricsOf({ services, clock_watch, unseen, orphans, delivery, quotas, usage, transfers, feed }),
    services,
    writes: database.writes,
    write_probe: writeProbeJob(database.db, database.writes),
    clock_watch,
    unseen,
    orphans,
    recorded,
    feed,
    claim_rules,
    delivery,
    quotas,
    usage,
    transfers,
    keys,
    uses: new Uses(clock, new UseStore(database)),
    housekeeping,
    operations,
    operation_recovery,
    deletions,
    claims: new Claims(services, operations, operation_recovery, keys),
    sandboxes: new Sandboxes(services, transitions),
    forks: new Forks(services, operations, operation_recovery, transitions),
    recovery: new RecoveryJob(services, housekeeping, operations, operation_recovery),
  };
}

/** What holds teams' transfers to their rate; loaded only where there is one. */
async function paceOf(
  { team_transfer_rate: bytes_per_second, quota_fail_open: is_fail_open }: ManagerConfig,
  { authority }: Quotas,
  clock: Clock,
): Promise<TransferPace | null> {
  if (bytes_per_second === null) return null;
  const { TransferPace } = await import('./transfer/transfer-pace.ts');
  return new TransferPace({ bytes_per_second, authority, is_fail_open, clock });
}

/** The schedule of all periodic jobs; none runs before it is started. */
export function makeSchedule(parts: Parts): Schedule {
  const {
    services,
    write_probe,
    clock_watch,
    orphans,
    operations,
    operation_recovery,
    uses,
    keys,
    recovery,
    usage,
    transfers,
    feed,
    housekeeping,
  } = parts;
  const schedule = new Schedule(services.clock, services.log, reasonOf);
  for (const job of [
    write_probe,
    clock_watch.job(),
    recovery,
    renewalJob(operations),
    expiryJob(parts),
    uses,
    watchJob(services, housekeeping),
    comparisonJob(services, housekeeping, operation_recovery),
    orphans.job(),
    networkJob(services.runtime.networks, services.log),
    purgeJob(services, housekeeping, keys),
    ...usage.jobs(),
    transfers.job(),
    ...feed.jobs(),
  ]) {
    schedule.add(job);
  }
  return schedule;
}

interface Metered {
  services: SandboxServices;
  unseen: UnseenSandboxes;
  orphans: Orphans;
  clock_watch: ClockWatch;
  delivery: ManagerOutbox;
  quotas: Quotas;
  usage: Usage;
  transfers: Transfers;
  feed: Feed;
}

/** The metrics of every part. */
function metricsOf(metered: Metered): MetricsRegistry {
  const { services, clock_watch, unseen, orphans, delivery, quotas, usage, transfers, feed } = metered;
  const { metrics, store, runtime } = services;
  const registry = new MetricsRegistry('sandbox_manager');
  registry.add([
    ...processMetrics(),
    ...clock_watch.metrics(),
    ...metrics.metrics(),
    ...unseen.metrics(),
    ...orphans.metrics(),
    ...runtime.metrics(),
    ...delivery.metrics(),
    ...quotas.metrics(),
    ...usage.metrics(),
    ...transfers.metrics(),
    ...feed.metrics(),
    labelledGauge('sandboxes', 'Sandboxes of all teams.', 'status', async () =>
      Object.fromEntries((await store.countByStatus()).map(({ status, count }) => [status, count])),
    ),
  ]);
  return registry;
}
