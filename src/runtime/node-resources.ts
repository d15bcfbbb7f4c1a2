import { statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';

/** What the machine has for sandboxes where no option says less. Source: contract section 7, `--node-…`. */
export interface NodeResources {
  memory_mib: number;
  cpu_millis: number;
  /** The size of the file system of the data directory, and what of it is free at present. */
  disk_bytes: number;
  disk_free_bytes: number;
}

/** Asks the machine; `data_dir` must exist. */
export function nodeResources(data_dir: string): NodeResources {
  const disk = statfsSync(data_dir);
  return {
    memory_mib: Math.floor(totalmem() / (1024 * 1024)),
    cpu_millis: availableParallelism() * 1000,
    disk_bytes: disk.blocks * disk.bsize,
    disk_free_bytes: disk.bavail * disk.bsize,
  };
}
