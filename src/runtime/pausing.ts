import type { Clock } from '../base/clock.ts';
import type { ResourceGroups } from './limits/resource-groups.ts';
import { changeThroughDaemon, updateRecord } from './running-sandbox.ts';
import type { RuntimeChange } from './runtime.ts';
import type { SandboxFiles } from './sandbox-files.ts';

/**
 * Pauses or resumes a sandbox through its daemon, which stops and continues the processes that it knows; the kernel
 * freezes them all besides. Errors as in `changeThroughDaemon`, and if the kernel does not; then it is as before.
 */
export async function setPaused(
  files: SandboxFiles,
  is_paused: boolean,
  reason: string | null,
  { groups, clock }: { groups: ResourceGroups; clock: Clock },
): Promise<RuntimeChange> {
  const { sandbox_id } = files;
  const change = (to: boolean) =>
    changeThroughDaemon(files, 'POST', to ? '/sandbox/pause' : '/sandbox/resume', { reason });
  const daemon = files.readRecord()?.daemon;
  if (!is_paused) groups.frozen.thaw(sandbox_id);
  const changed = await change(is_paused);
  if (changed !== 'done') return changed;
  try {
    if (is_paused && daemon) await groups.frozen.freeze(sandbox_id, daemon, clock);
  } catch (error) {
    groups.frozen.thaw(sandbox_id);
    await change(false);
    throw error;
  }
  updateRecord(files, { is_paused });
  return changed;
}
