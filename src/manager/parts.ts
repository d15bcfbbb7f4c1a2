import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { AddressGuard } from '../webhook/address-guard.ts';
import { CLUSTER_ID, Claims } from './claims.ts';
import type { ManagerConfig } from './config.ts';
import type { Database } from './database.ts';
import { Deletions } from './deletion.ts';
import { Delivery } from './delivery.ts';
import { Forks } from './forks.ts';
import { expiryJob, purgeJob, renewalJob, watchJob } from './housekeeping.ts';
import { IdempotencyStore } from './idempotency-store.ts';
import { ManagerMetrics } from './metrics.ts';
import { Operations, type Works } from './operations.ts';
import { Quotas } from './quotas.ts';
import { Recovery } from './recovery.ts';
import { replicaName } from './replica.ts';
import { SandboxStore } from './sandbox-store.ts';
import { Sandboxes } from './sandboxes.ts';
import { Schedule } from './schedule.ts';
import type { Seal } from './seal.ts';
import { Settler } from './settler.ts';
import { TransitionRunner } from './transition-runner.ts';
import { Usage } from './usage.ts';

/** What a manager is given. */
export interface ManagerParts {
  config: ManagerConfig;
  log: Log;
  clock: Clock;
  runtime: Runtime;
}

/** What a manager is made of, beside its API. */
export type Parts = Awaited<ReturnType<typeof makeParts>>;

/** Makes the parts and joins them; nothing of them runs yet. */
export async function makeParts(given: ManagerParts, database: Database, seal: Seal) {
  const { config, log, clock, runtime } = given;
  const replica = replicaName();
  const guard = new AddressGuard(config.allow_webhook_cidr);
  const metered = { runtime, clock, region_id: config.region, cluster_id: CLUSTER_ID };
  const usage = await Usage.open(database, metered, config.metering);
  // The last that asks the database: it is the first that keeps something open.
  const quotas = await Quotas.open({ config, database, clock, log });
  const delivery = new Delivery({ database, clock, log, seal, guard, replica });
  const store = new SandboxStore(database);
  const works: Works = {
    ...{ clock, log, store, runtime, seal, replica },
    metrics: new ManagerMetrics(),
    admission: quotas.admission,
    metering: usage.metering,
    notices: delivery,
  };
  const keys = new IdempotencyStore(database.db);
  const operations = new Operations(works);
  const deletions = new Deletions(works, operations);
  const settler = new Settler(works, operations, (row) => deletions.clean(row));
  const transitions = new TransitionRunner(works, operations, settler);
  return {
    ...{ works, guard, delivery, quotas, usage, keys, operations, deletions },
    claims: new Claims(works, operations, settler, keys),
    sandboxes: new Sandboxes(works, transitions),
    forks: new Forks(works, operations, settler, transitions),
    recovery: new Recovery(works, operations, settler),
  };
}

/** Everything that is looked after again and again. */
export function makeSchedule(parts: Parts): Schedule {
  const { works, operations, sandboxes, deletions, keys, recovery, usage } = parts;
  const schedule = new Schedule(works.clock, works.log);
  for (const job of [
    recovery,
    renewalJob(operations),
    expiryJob(works, sandboxes, deletions),
    watchJob(works),
    purgeJob(works, keys),
    ...usage.jobs(),
  ]) {
    schedule.add(job);
  }
  return schedule;
}

/** Gives every part's figures to `/metrics`. */
export function addFigures({ works, delivery, quotas, usage }: Parts): void {
  const { metrics, store } = works;
  for (const figure of [...delivery.figures(), ...quotas.figures(), ...usage.figures()]) metrics.add(figure);
  metrics.add({
    name: 'sandboxes',
    type: 'gauge',
    help: 'Sandboxes of all teams.',
    samples: async () =>
      (await store.countByStatus()).map(({ status, count }) => ({ labels: { status }, value: count })),
  });
}
