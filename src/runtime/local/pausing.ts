import type { Clock } from '../../base/clock.ts';
import type { ResourceGroups } from '../limits/resource-groups.ts';
import type { RuntimeChange } from '../runtime.ts';
import { changeThroughDaemon, updateRecord } from './running-sandbox.ts';
import type { SandboxFiles } from './sandbox-files.ts';

/**
 * Pauses or resumes a sandbox through its daemon, which stops and continues the processes that it knows; the kernel
 * freezes them all besides. Errors as in `changeThroughDaemon`, and if the kernel does not; then it is as before.
 */
export async function setSandboxPaused(
  files: SandboxFiles,
  is_paused: boolean,
  reason: string | null,
  { groups, clock }: { groups: ResourceGroups; clock: Clock },
): Promise<RuntimeChange> {
  const { sandbox_id } = files;
  const { frozen } = groups;
  const { daemon, is_paused: was_paused } = files.readRecord() ?? {};
  const change = (to: boolean) =>
    changeThroughDaemon(files, 'POST', to ? '/sandbox/pause' : '/sandbox/resume', { reason });
  const freeze = async () => {
    if (daemon) await frozen.freeze(sandbox_id, daemon, clock);
  };
  if (!is_paused) frozen.thaw(sandbox_id);
  const changed = await change(is_paused).catch(async (error) => {
    if (was_paused) await freeze();
    throw error;
  });
  if (changed !== 'done') return changed;
  if (is_paused) {
    await freeze().catch(async (error) => {
      frozen.thaw(sandbox_id);
      await change(false);
      throw error;
    });
  }
  updateRecord(files, { is_paused });
  return changed;
}
