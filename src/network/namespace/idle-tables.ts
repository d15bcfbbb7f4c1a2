import { existsSync } from 'node:fs';
import { type NodeGroup, TABLE_PREFIX } from './node-group.ts';

const TABLES = new RegExp(`^table inet (${TABLE_PREFIX}\\S+)$`, 'gm');

/**
 * Removes tables that killed managers left without sandboxes, and whose data directories are gone. Those of other living
 * managers whose data directory cannot be seen from here make theirs again. `run`: runs a command on the node.
 */
export async function removeIdleTables(
  run: (command: string[]) => Promise<string>,
  own: NodeGroup,
): Promise<void> {
  const listed = await run(['nft', 'list', 'tables', 'inet']);
  for (const [, table = ''] of listed.matchAll(TABLES)) {
    if (table === own.table) continue;
    // Another manager may be faster.
    const content = await run(['nft', 'list', 'table', 'inet', table]).catch(() => '');
    const data_dir = idleDataDir(content);
    if (data_dir !== null && !existsSync(data_dir))
      await run(['nft', 'delete', 'table', 'inet', table]).catch(() => {});
  }
}

/** The data directory in a table as `nft` shows it, if it admits no link; else null. */
function idleDataDir(table: string): string | null {
  return /"vsbx\d/.test(table) ? null : (/comment "([^"]+)"/.exec(table)?.[1] ?? null);
}
