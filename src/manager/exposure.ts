import { StartError } from '../contract/errors.ts';
import type { ManagerConfig } from './config/config.ts';
import { letsAnybodyIn } from './database/postgres-exposure.ts';
import { letsAnybodyCommand } from './quotas/redis-exposure.ts';

const SHARED = 'and sandboxes of --runtime local may reach it over the network: each of them could';

/**
 * Refuses to run sandboxes next to a store without a password: through the database a sandbox could create tokens, through
 * the rate authority change quotas. Throws StartError that says what to do.
 */
export async function refuseExposure({ runtime, database, redis }: ManagerConfig): Promise<void> {
  if (runtime !== 'local') return;
  if (database.startsWith('postgres') && (await letsAnybodyIn(database))) {
    throw new StartError(
      `--database lets anybody in without a password, ${SHARED} take over the manager. Require one (scram-sha-256 in pg_hba.conf), or use --runtime none`,
    );
  }
  if (redis !== null && (await letsAnybodyCommand(redis))) {
    throw new StartError(
      `--redis takes commands without a password, ${SHARED} change every quota. Require one (requirepass) and give it in the URL, or use --runtime none`,
    );
  }
}
