import type { Clock } from '../base/clock.ts';
import { createHttpApp } from '../base/http-app.ts';
import type { Log } from '../base/log.ts';
import type { Service } from '../base/service.ts';
import { VERSION } from '../base/version.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { AddressGuard } from '../webhook/address-guard.ts';
import { guardRoutes } from './auth.ts';
import { CLUSTER_ID, Claims } from './claims.ts';
import type { ManagerConfig } from './config.ts';
import { type Database, openDatabase } from './database.ts';
import { Deletions } from './deletion.ts';
import { Delivery } from './delivery.ts';
import { expiryJob, purgeJob, renewalJob, watchJob } from './housekeeping.ts';
import { IdempotencyStore } from './idempotency-store.ts';
import { ManagerMetrics } from './metrics.ts';
import { Operations, type Works } from './operations.ts';
import { explainRefusals, Quotas } from './quotas.ts';
import { Recovery } from './recovery.ts';
import { replicaName } from './replica.ts';
import { registerDeliveryRoutes } from './routes/deliveries.ts';
import { registerHealthRoutes } from './routes/health-routes.ts';
import { registerPassThroughRoutes } from './routes/pass-through-routes.ts';
import { registerQuotaRoutes } from './routes/quota-routes.ts';
import { registerSandboxRoutes } from './routes/sandbox-routes.ts';
import { registerUsageRoutes } from './routes/usage-routes.ts';
import { logTrouble, registerRoutes } from './routes.ts';
import { SandboxStore } from './sandbox-store.ts';
import { Sandboxes } from './sandboxes.ts';
import { Schedule } from './schedule.ts';
import { openSeal, type Seal } from './seal.ts';
import { checkSeal } from './seal-check.ts';
import { ApiServer } from './server.ts';
import { SettingStore } from './setting-store.ts';
import { Settler } from './settler.ts';
import { TokenStore } from './token-store.ts';
import { Usage } from './usage.ts';

/** What a manager is given. */
export interface ManagerParts {
  config: ManagerConfig;
  log: Log;
  clock: Clock;
  runtime: Runtime;
}

/** The composition root: builds the parts, starts them in order and stops them in reverse. */
export class Manager implements Service {
  readonly #parts: ManagerParts;
  #database: Database | null = null;
  #server: ApiServer | null = null;
  /** What runs, in the order of its start. */
  readonly #services: Service[] = [];
  #stopping: Promise<void> | null = null;

  constructor(parts: ManagerParts) {
    this.#parts = parts;
  }

  /** Where the API is served, once it has started. */
  get url(): string {
    return this.#server?.url ?? '';
  }

  /** Starts everything; throws StartError with the one line that a user is to see. */
  async start(): Promise<void> {
    const { config, log, runtime } = this.#parts;
    await runtime.start();
    const seal = openSeal(config.secret_key_file);
    this.#database = await openDatabase(config.database);
    await checkSeal(seal, new SettingStore(this.#database.db));
    const server = await this.#build(this.#database, seal);
    await server.listen(config.host, config.port);
    for (const service of this.#services) await service.start();
    log.info({ url: this.url, version: VERSION }, 'listening');
  }

  async #build(database: Database, seal: Seal): Promise<ApiServer> {
    const { config, log, clock, runtime } = this.#parts;
    const replica = replicaName();
    const guard = new AddressGuard(config.allow_webhook_cidr);
    const delivery = new Delivery({ database, clock, log, seal, guard, replica });
    const store = new SandboxStore(database);
    const metrics = new ManagerMetrics();
    const quotas = await Quotas.open({ config, database, clock, log });
    this.#services.push({ start: async () => {}, stop: () => quotas.close() });
    const metered = { runtime, clock, region_id: config.region, cluster_id: CLUSTER_ID };
    const usage = await Usage.open(database, metered, config.metering);
    const works: Works = {
      ...{ clock, log, store, runtime, seal, metrics, replica },
      admission: quotas.admission,
      metering: usage.metering,
      notices: delivery,
    };
    const keys = new IdempotencyStore(database.db);
    const operations = new Operations(works);
    const deletions = new Deletions(works, operations);
    const settler = new Settler(works, operations, (row) => deletions.clean(row));
    const claims = new Claims(works, operations, settler, keys);
    const sandboxes = new Sandboxes(works, operations, settler);
    const recovery = new Recovery(works, operations, settler);
    const schedule = new Schedule(clock, log);
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
    for (const figure of [...delivery.figures(), ...quotas.figures(), ...usage.figures()])
      metrics.add(figure);
    metrics.add({
      name: 'sandboxes',
      type: 'gauge',
      help: 'Sandboxes of all teams.',
      samples: async () =>
        (await store.countByStatus()).map(({ status, count }) => ({ labels: { status }, value: count })),
    });

    const app = createHttpApp(log);
    const server = new ApiServer(app, clock);
    this.#server = server;
    logTrouble(app, log);
    explainRefusals(app);
    guardRoutes(app, new TokenStore(database.db, clock), (...request) => quotas.charges.charge(...request));
    await registerRoutes(app, [
      (routes) => registerSandboxRoutes(routes, { store, claims, sandboxes, deletions, guard }),
      (routes) => registerPassThroughRoutes(routes, { sandboxes, runtime, clock }),
      (routes) => registerDeliveryRoutes(routes, delivery),
      (routes) => registerQuotaRoutes(routes, quotas),
      (routes) => registerUsageRoutes(routes, usage),
      (routes) =>
        registerHealthRoutes(
          routes,
          {
            async notReady() {
              await store.countByStatus();
              return recovery.is_done ? null : 'What was left behind is being settled.';
            },
            facts: () => quotas.facts(),
          },
          metrics,
        ),
    ]);
    this.#services.push(delivery, schedule, {
      start: async () => {},
      stop: async () => {
        deletions.stop();
        await operations.settled();
      },
    });
    return server;
  }

  /** Ends this replica; sandboxes run on. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    await this.#server?.close();
    for (const service of this.#services.toReversed()) await service.stop();
    await this.#database?.close();
  }
}
