import { readdirSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { sandboxesByProcesses } from '../limits/machine-share.ts';
import type { NodeResources, SandboxNode } from '../runtime.ts';
import { DISK_IMAGE } from './sandbox-files.ts';

/** This machine, with the file system of a data directory. */
export class LocalNode implements SandboxNode {
  readonly #data_dir: string;

  constructor(data_dir: string) {
    this.#data_dir = data_dir;
  }

  /** Throws if the data directory does not exist. */
  resources(): NodeResources {
    return {
      memory_mib: Math.floor(totalmem() / (1024 * 1024)),
      cpu_millis: availableParallelism() * 1000,
      disk_bytes: this.freeDiskBytes() + this.#diskBytesTaken(),
      sandboxes: sandboxesByProcesses(),
    };
  }

  /** Of the data directory's file system. */
  freeDiskBytes(): number {
    const disk = statfsSync(this.#data_dir);
    return disk.bavail * disk.bsize;
  }

  /** The bytes that sandboxes' disks take. */
  #diskBytesTaken(): number {
    const images = readdirSync(this.#data_dir).map((name) => join(this.#data_dir, name, DISK_IMAGE));
    return images.reduce(
      (sum, image) => sum + (statSync(image, { throwIfNoEntry: false })?.blocks ?? 0) * 512,
      0,
    );
  }
}
