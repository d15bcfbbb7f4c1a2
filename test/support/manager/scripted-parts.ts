import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import type { Given } from '../../../src/base/options.ts';
import { managerConfig } from '../../../src/manager/config/config.ts';
import type { Database } from '../../../src/manager/database/database.ts';
import { makeParts } from '../../../src/manager/parts.ts';
import { claimRequest } from '../../../src/manager/sandboxes/requests.ts';
import type { SandboxRef } from '../../../src/manager/sandboxes/transition-runner.ts';
import { ManualClock } from '../manual-clock.ts';
import { scratchFolder } from '../scratch.ts';
import { timedBy } from './manual-time.ts';
import { opened, SEAL, SILENT } from './outbox.ts';
import { ScriptedRuntime } from './scripted-runtime.ts';

const CALLER = { team_id: 'team_1', actor: 'tok_1', scopes: [], is_internal: false };

/** The parts of a manager without its API and its jobs, on a clock that the test moves; its runtime obeys the test. */
export async function scriptedParts(
  database_url = `sqlite:${join(scratchFolder(), 'manager.db')}`,
  options: Given = {},
) {
  const clock = new ManualClock();
  const runtime = new ScriptedRuntime();
  const database = timedBy(await opened(database_url), clock);
  return { ...(await partsOn(database, { clock, runtime }, { database: database_url, ...options })), clock };
}

/** The same on a machine with a clock of its own; several may share a database and a runtime, as replicas do. */
export async function partsOn(
  database: Database,
  { clock, runtime }: { clock: Clock; runtime: ScriptedRuntime },
  options: Given = {},
) {
  const config = managerConfig({ runtime: 'none', allow_webhook_cidr: ['127.0.0.0/8'], ...options }, {}, {});
  const parts = await makeParts({ config, log: SILENT, clock, runtime }, database, SEAL);
  onTestFinished(() => parts.quotas.close());
  return {
    ...parts,
    runtime,
    database,
    /** Claims a sandbox for team_1. */
    async claim(body: Parameters<typeof claimRequest>[0] = {}): Promise<SandboxRef> {
      const { sandbox_id } = await parts.claims.claim(CALLER, claimRequest(body, parts.claim_rules), null);
      return { sandbox_id, team_id: 'team_1' };
    },
  };
}
