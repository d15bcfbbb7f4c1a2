import { existsSync } from 'node:fs';
import { systemClock, timestamp } from '../../base/clock.ts';
import { createLog } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import { chooseRuntime, type RuntimeOptions } from '../../runtime/choose.ts';
import { pendingOf } from '../../runtime/daemon-requests.ts';
import type { KeptSandbox, Runtime } from '../../runtime/runtime.ts';
import type { ManagerConfig } from '../config/config.ts';
import type { Database } from '../database/database.ts';
import { DatabaseClock } from '../database/database-clock-store.ts';
import { checkSeal, openSeal } from '../database/seal.ts';
import { SettingStore } from '../database/setting-store.ts';
import { checkAdopting } from '../ownership/place-check.ts';
import { withDatabase } from '../ownership/with-database.ts';
import { type OrphanVerbs, orphanVerbs } from './adoption.ts';
import { OrphanStore } from './orphan-store.ts';
import { madeMs } from './orphans.ts';
import { RecordedStore } from './recorded-store.ts';

/** A sandbox that is here and not recorded, as `orphans list` shows it. */
export interface OrphanView {
  sandbox_id: string;
  team_id: string;
  /** When it was claimed; null where its id does not say. */
  created_at: string | null;
  state: KeptSandbox['state'];
  memory_mib: number;
  disk_mib: number | null;
  /** Acknowledged events that its daemon has not delivered; null where it does not answer. */
  pending_events: number | null;
}

/** What `orphans list` shows: `unseen` are recorded, and nothing of them is here. */
export interface OrphansView {
  orphans: OrphanView[];
  unseen: string[];
}

/**
 * The commands `sandbox-manager orphans …`, on the server's database and where its sandboxes are, beside a running manager or
 * without one. Each throws StartError. Source: contract section 7, "What runs and what is recorded".
 */
export const orphansCommand = {
  /** Compares what is here with what is recorded; changes nothing. */
  async list(config: ManagerConfig): Promise<OrphansView> {
    return withPlace(config, async ({ database, runtime }) => {
      const here = await runtime.list();
      const recorded = await new RecordedStore(database.db).recorded(here);
      const orphans: OrphanView[] = [];
      for (const sandbox_id of here) {
        const kept = recorded.has(sandbox_id) ? null : await runtime.kept(sandbox_id);
        if (kept !== null) orphans.push(await viewOf(runtime, sandbox_id, kept));
      }
      const seen = new Set(here);
      const unseen: string[] = [];
      for await (const rows of new OrphanStore(database).ids()) {
        unseen.push(...rows.flatMap(({ sandbox_id }) => (seen.has(sandbox_id) ? [] : [sandbox_id])));
      }
      return { orphans, unseen };
    });
  },

  /** Records orphans again; gives what could not be known of each. */
  async adopt(config: ManagerConfig, sandbox_id: string): Promise<string[]> {
    return withAdoption(config, (given) => given.adopt(sandbox_id));
  },

  /** Has an orphan ended, and what it had not delivered handed over; gives what could not be known of it. */
  async end(config: ManagerConfig, sandbox_id: string): Promise<string[]> {
    return withAdoption(config, (given) => given.end(sandbox_id));
  },

  /** Deletes a recorded sandbox of which nothing is here; what it had acknowledged elsewhere is given up. */
  async giveUp(config: ManagerConfig, sandbox_id: string): Promise<void> {
    return withAdoption(config, (given) => given.giveUp(sandbox_id));
  },
};

interface Place {
  database: Database;
  runtime: Runtime;
}

async function viewOf(runtime: Runtime, sandbox_id: string, kept: KeptSandbox): Promise<OrphanView> {
  const { team_id, state, memory_mib, disk_mib } = kept;
  const made_ms = madeMs(sandbox_id);
  const is_up = state === 'running' || state === 'paused';
  return {
    sandbox_id,
    team_id,
    created_at: made_ms === null ? null : timestamp(made_ms),
    state,
    memory_mib,
    disk_mib,
    pending_events: is_up ? await pendingOf(() => runtime.connect(sandbox_id)) : null,
  };
}

async function withPlace<Result>(
  config: ManagerConfig,
  work: (place: Place) => Promise<Result>,
): Promise<Result> {
  const { database: url, runtime: kind, data_dir } = config;
  if (kind === 'none') throw new StartError('--runtime none has no sandboxes that could be orphans', 2);
  if (kind !== 'kubernetes' && !existsSync(data_dir))
    throw new StartError(`--data-dir ${data_dir} is not there`, 2);
  const options: RuntimeOptions = config;
  return withDatabase(url, async (database) => {
    const runtime = await chooseRuntime(options, systemClock, createLog('fatal'));
    try {
      return await work({ database, runtime });
    } finally {
      await runtime.stop();
    }
  });
}

async function withAdoption<Result>(
  config: ManagerConfig,
  work: (given: OrphanVerbs) => Promise<Result>,
): Promise<Result> {
  const { secret_key_file } = config;
  if (!existsSync(secret_key_file))
    throw new StartError(`--secret-key-file ${secret_key_file} is not there`, 2);
  const seal = openSeal(secret_key_file);
  return withPlace(config, async ({ database, runtime }) => {
    const settings = new SettingStore(database.db);
    await checkSeal(seal, settings);
    await checkAdopting(runtime, settings);
    const clock = await DatabaseClock.open(database, systemClock);
    return work(await orphanVerbs({ config, database, clock, runtime, seal, log: createLog('fatal') }));
  });
}
