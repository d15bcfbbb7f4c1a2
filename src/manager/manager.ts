import type { Service } from '../base/service.ts';
import { VERSION } from '../base/version.ts';
import type { ApiServer } from './api/server.ts';
import { makeApi } from './api.ts';
import { type Database, openDatabase } from './database/database.ts';
import { reasonOf } from './database/database-errors.ts';
import { openSeal } from './database/seal.ts';
import { checkSeal } from './database/seal-check.ts';
import { SettingStore } from './database/setting-store.ts';
import { TokenStore } from './database/token-store.ts';
import { DatabaseWait } from './database-wait.ts';
import { refuseExposure } from './exposure.ts';
import { warnOfBandwidth } from './network-job.ts';
import { type ManagerParts, makeParts, makeSchedule } from './parts.ts';

/** The composition root: builds the parts, starts them in order and stops them in reverse order. */
export class Manager implements Service {
  readonly #given: ManagerParts;
  readonly #wait: DatabaseWait;
  #database: Database | null = null;
  #server: ApiServer | null = null;
  /** What runs, in the order of its start. */
  readonly #services: Service[] = [];
  #stopping: Promise<void> | null = null;

  constructor(given: ManagerParts) {
    this.#given = given;
    this.#wait = new DatabaseWait({ ...given, ...given.config });
  }

  /** The URL of the API once it has started, otherwise empty. */
  get url(): string {
    return this.#server?.url ?? '';
  }

  /** Starts everything; throws StartError with one line for the user. */
  async start(): Promise<void> {
    const { config, log, runtime } = this.#given;
    await runtime.start();
    const seal = openSeal(config.secret_key_file);
    const database = await this.#wait.until(() => openDatabase(config.database));
    this.#database = database;
    const { db } = database;
    await this.#wait.until(() => checkSeal(seal, new SettingStore(db)));
    const parts = await this.#wait.until(() => makeParts(this.#given, database, seal));
    await refuseExposure(config);
    await this.#wait.end();
    const { quotas, delivery, deletions, operations, uses } = parts;
    const { networks } = runtime;
    warnOfBandwidth(config.bandwidth, networks.state(), log);
    const schedule = makeSchedule(parts);
    this.#services.push(
      endingWith(() => quotas.close()),
      endingWith(() => networks.close()),
      delivery,
      endingWith(async () => {
        await uses.flush().catch((error) => {
          log.warn({ reason: reasonOf(error) }, 'the last uses of sandboxes could not be noted');
        });
      }),
      schedule,
      endingWith(async () => {
        deletions.stop();
        await operations.drained();
      }),
    );
    await networks.open(quotas.networkSources());
    this.#server = await makeApi(parts, new TokenStore(db, this.#given.clock), schedule, config.console);
    await this.#server.listen(config.host, config.port);
    for (const service of this.#services) await service.start();
    log.info({ url: this.url, version: VERSION }, 'listening');
  }

  /** Stops this replica; sandboxes keep running. Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    await this.#wait.stop();
    await this.#server?.close();
    for (const service of this.#services.toReversed()) await service.stop();
    await this.#given.runtime.stop();
    await this.#database?.close();
  }
}

/** A service that only needs to be stopped. */
function endingWith(stop: () => Promise<void>): Service {
  return { start: async () => {}, stop };
}
