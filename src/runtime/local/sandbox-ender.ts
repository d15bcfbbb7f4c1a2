import { existsSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import { toolProblem } from '../../base/run-tool.ts';
import { askToStop, STOP_TIMEOUT_MS } from '../daemon-requests.ts';
import type { SandboxDisks } from '../disk/sandbox-disks.ts';
import type { ResourceGroups } from '../limits/resource-groups.ts';
import type { LocalNetworks } from '../networks/local-networks.ts';
import type { Fence, RuntimeEnd } from '../runtime.ts';
import { type Begin, stepsOf } from '../steps.ts';
import { killMarked, waitForExit } from './host-process.ts';
import { isLost } from './running-sandbox.ts';
import type { LocalRecord, SandboxFiles } from './sandbox-files.ts';
import type { DamagedOutboxes } from './undelivered.ts';

/** What a `SandboxEnder` works with. */
export interface SandboxEnderParts {
  groups: ResourceGroups;
  disks: SandboxDisks;
  networks: LocalNetworks;
  damaged: DamagedOutboxes;
  clock: Clock;
  log: Log;
}

/** Ends sandboxes and removes them. Every step may be repeated, after an interruption or by another manager. */
export class SandboxEnder {
  readonly #parts: SandboxEnderParts;

  constructor(parts: SandboxEnderParts) {
    this.#parts = parts;
  }

  /** Ends the sandbox's processes and its daemon; nothing of it runs afterwards. Idempotent. */
  async end(files: SandboxFiles, fence?: Fence): Promise<RuntimeEnd> {
    const begin = stepsOf(fence, () => files.takenBy());
    const record = files.readRecord();
    if (!record || record.state === 'creating') {
      await begin('kill what was not complete');
      await this.#kill(files);
      return { outcome: 'absent' };
    }
    if (record.state === 'ended') return { outcome: record.outcome ?? 'lost' };
    const outcome = await this.#stop(files, record, begin);
    await begin('kill what still runs');
    await this.#kill(files);
    await begin('record the end');
    files.writeRecord({ ...record, state: 'ended', outcome });
    return { outcome };
  }

  /**
   * Kills what still runs of a sandbox and removes its directory; a damaged outbox is preserved. Idempotent, also while
   * another replica does the same.
   */
  async remove(files: SandboxFiles, fence?: Fence): Promise<void> {
    const begin = stepsOf(fence, () => files.takenBy());
    await begin('kill the sandbox');
    await this.#kill(files);
    await begin('detach the network');
    await this.#parts.networks.detach(files);
    await begin('keep a damaged outbox');
    await this.#parts.damaged.preserve(files);
    await begin('unmount the disk');
    await this.#parts.disks.detach(files);
    await begin('remove the directory');
    await removeDirectory(files.directory);
  }

  async #stop(files: SandboxFiles, record: LocalRecord, begin: Begin): Promise<'killed' | 'lost'> {
    // A daemon that is gone after `ending` was written has ended on request, of this call or an earlier one.
    if (await isLost(record)) return record.state === 'ending' ? 'killed' : 'lost';
    await begin('record that it ends');
    files.writeRecord({ ...record, state: 'ending' });
    await begin('ask the daemon to stop');
    this.#parts.groups.frozen.thaw(files.sandbox_id);
    const { clock, log } = this.#parts;
    const is_accepted = await askToStop(files.socket_address);
    const has_ended =
      is_accepted && record.daemon && (await waitForExit(clock, record.daemon, STOP_TIMEOUT_MS));
    if (has_ended) return 'killed';
    log.warn({ sandbox_id: files.sandbox_id }, 'killing a daemon that did not stop in time');
    return 'lost';
  }

  /** Kills what still runs of a sandbox. Processes are found by their mark, because the record may be missing. */
  async #kill(files: SandboxFiles): Promise<void> {
    const { clock, groups } = this.#parts;
    groups.frozen.thaw(files.sandbox_id);
    await killMarked(clock, files.directory);
    await groups.remove(files.sandbox_id, clock);
  }
}

/**
 * Removes a directory with everything that a sandbox may have created in it: trees deeper than the longest path,
 * millions of files, directories without write permission. Links are not followed. Throws if something is left.
 */
export async function removeDirectory(directory: string): Promise<void> {
  if ((await toolProblem('rm', '-rf', '--', directory)) === null) return;
  // An owner without permissions in its own directory grants them to itself first.
  await toolProblem('chmod', '-R', 'u+rwX', '--', directory);
  const why = await toolProblem('rm', '-rf', '--', directory);
  if (why !== null && existsSync(directory)) throw new Error(`${directory} cannot be removed: ${why}`);
}
