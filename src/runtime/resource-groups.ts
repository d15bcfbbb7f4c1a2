import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unifiedMountPoint } from '../base/linux/cgroup.ts';
import type { Log } from '../base/log.ts';

/** Limits of one sandbox: MiB, and thousandths of a core. */
export interface ResourceLimits {
  memory_mib: number;
  cpu_millis: number;
}

const GROUP = 'sandbox-manager';
const CPU_PERIOD_US = 100_000;
const CONTROLLERS = '+memory +cpu';

/**
 * Enforces memory and CPU limits with one control group (version 2) for each sandbox. If this program cannot create
 * control groups, limits are only recorded, and the log says so once.
 */
export class ResourceGroups {
  readonly #folder: string | null;

  private constructor(folder: string | null) {
    this.#folder = folder;
  }

  /** Prepares the hierarchy at `mount` (null: there is none). Never throws. */
  static open(log: Log, mount: string | null = unifiedMountPoint()): ResourceGroups {
    try {
      if (mount === null) throw new Error('no cgroup2 file system is mounted');
      const folder = join(mount, GROUP);
      writeFileSync(join(mount, 'cgroup.subtree_control'), CONTROLLERS);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'cgroup.subtree_control'), CONTROLLERS);
      return new ResourceGroups(folder);
    } catch (error) {
      const reason = (error as Error).message;
      log.warn(
        { reason },
        'memory and CPU limits of sandboxes are recorded but not enforced: cannot use cgroups',
      );
      return new ResourceGroups(null);
    }
  }

  /** What is only recorded, a phrase for each. */
  limitations(): string[] {
    return this.#folder === null ? ['memory and CPU limits of sandboxes are not enforced'] : [];
  }

  /** Creates a sandbox's group, without limits, and returns its folder; null if limits are not enforced. */
  make(sandbox_id: string): string | null {
    if (this.#folder === null) return null;
    const folder = join(this.#folder, sandbox_id);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  /** Sets the limits of a sandbox's group; they apply at once. */
  limit(sandbox_id: string, { memory_mib, cpu_millis }: ResourceLimits): void {
    if (this.#folder === null) return;
    const folder = join(this.#folder, sandbox_id);
    writeFileSync(join(folder, 'memory.max'), String(memory_mib * 1024 * 1024));
    writeFileSync(
      join(folder, 'cpu.max'),
      `${Math.round((cpu_millis * CPU_PERIOD_US) / 1000)} ${CPU_PERIOD_US}`,
    );
  }

  /** Removes the group of a sandbox that has no processes left. Idempotent. */
  remove(sandbox_id: string): void {
    if (this.#folder === null) return;
    try {
      rmdirSync(join(this.#folder, sandbox_id));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}
