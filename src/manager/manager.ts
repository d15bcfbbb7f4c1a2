import { type Service, ServiceGroup } from '../base/service.ts';
import { VERSION } from '../base/version.ts';
import type { ManagerCall } from './api/call.ts';
import type { ApiServer } from './api/server.ts';
import { makeApi } from './api.ts';
import { openDatabase } from './database/database.ts';
import { reasonOf } from './database/database-errors.ts';
import { checkSeal, openSeal } from './database/seal.ts';
import { SettingStore } from './database/setting-store.ts';
import { TokenStore } from './database/token-store.ts';
import { DatabaseWait } from './database-wait.ts';
import { refuseExposure } from './exposure.ts';
import { warnOfBandwidth } from './network-job.ts';
import { RecordedStore } from './orphans/recorded-store.ts';
import { holdDatabase } from './ownership/hold-database.ts';
import { checkPlace } from './ownership/place-check.ts';
import { type ManagerParts, makeParts, makeSchedule } from './parts.ts';

/** The composition root: builds the parts, starts them in order and stops them in reverse order. */
export class Manager implements Service {
  readonly #given: ManagerParts;
  readonly #wait: DatabaseWait;
  readonly #services = new ServiceGroup();
  #server: ApiServer | null = null;
  #has_tokens = false;
  #stopping: Promise<void> | null = null;
  readonly #displaced = Promise.withResolvers<string>();

  constructor(given: ManagerParts) {
    this.#given = given;
    this.#wait = new DatabaseWait({ ...given, ...given.config });
  }

  /** The URL of the API once it has started, otherwise empty. */
  get url(): string {
    return this.#server?.url ?? '';
  }

  /** The port for doors, once it has started; otherwise null. */
  get call(): ManagerCall | null {
    return this.#server?.call ?? null;
  }

  /** Whether there was a token when it started. */
  get has_tokens(): boolean {
    return this.#has_tokens;
  }

  /** Resolves with a reason once another manager has taken the database: this one is to be stopped. Otherwise never. */
  get displaced(): Promise<string> {
    return this.#displaced.promise;
  }

  /** Starts everything; throws StartError with one line for the user, and then everything is stopped again. */
  async start(): Promise<void> {
    try {
      await this.#start();
    } catch (error) {
      await this.#wait.stop();
      await this.#services.abandon(this.#given.log);
      throw error;
    }
  }

  /** Stops this replica; sandboxes keep running. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #start(): Promise<void> {
    const { config, clock, log, runtime } = this.#given;
    const services = this.#services;
    services.add(runtime);
    await runtime.start();
    const seal = openSeal(config.secret_key_file);
    const hold = await this.#wait.until(() =>
      holdDatabase({ url: config.database, is_alone: config.replicas === 1, clock, log }),
    );
    services.add({ stop: () => hold.release() });
    void hold.displaced.then(this.#displaced.resolve);
    const database = await this.#wait.until(() => openDatabase(config.database));
    services.add({ stop: () => database.close() });
    const { db } = database;
    await this.#wait.until(() => checkSeal(seal, new SettingStore(db)));
    const is_meant = config.adopt_data_dir;
    const recorded = (ids: string[]) => new RecordedStore(db).recorded(ids);
    await this.#wait.until(() =>
      checkPlace({ runtime, settings: new SettingStore(db), recorded, is_meant, log }),
    );
    await runtime.takeOver();
    const parts = await this.#wait.until(() => makeParts(this.#given, database, seal));
    await refuseExposure(config);
    await this.#wait.end();
    const { quotas, delivery, deletions, operations, uses, transfers } = parts;
    const { networks } = runtime;
    warnOfBandwidth(config.bandwidth, networks.state(), log);
    const schedule = makeSchedule(parts);
    services.add({ stop: () => quotas.close() });
    services.add({ stop: () => networks.close() });
    services.add({ stop: () => transfers.stop() });
    services.add(delivery);
    services.add({
      stop: () =>
        uses.flush().catch((error) => {
          log.warn({ reason: reasonOf(error) }, 'the last uses of sandboxes could not be noted');
        }),
    });
    services.add(schedule);
    services.add({
      stop: async () => {
        deletions.stop();
        await operations.drained();
      },
    });
    const isRecorded = async (id: string) =>
      !parts.orphans.has(id) && (await parts.recorded.recorded([id])).size > 0;
    await networks.open({ ...quotas.networkSources(), isRecorded });
    const tokens = new TokenStore(db, parts.services.clock);
    this.#has_tokens = !(await tokens.isEmpty());
    const server = await makeApi(parts, tokens, schedule, config.console);
    this.#server = server;
    // It listens before the parts above run, and stops before them: its requests use them.
    services.add({ stop: () => server.close() });
    await server.listen(config.host, config.port);
    await delivery.start();
    await schedule.start();
    log.info({ url: this.url, version: VERSION }, 'listening');
  }

  async #stop(): Promise<void> {
    await this.#wait.stop();
    await this.#services.stop();
  }
}
