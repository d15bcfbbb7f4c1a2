import { statfsSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';

/** The machine's resources, the limits for sandboxes if no option sets lower ones. Source: contract section 7, `--node-…`. */
export interface NodeResources {
  memory_mib: number;
  cpu_millis: number;
  /** The size of the data directory's file system, and the free part of it. */
  disk_bytes: number;
  disk_free_bytes: number;
}

/** Reads the machine's resources; throws if `data_dir` does not exist. */
export function nodeResources(data_dir: string): NodeResources {
  const disk = statfsSync(data_dir);
  return {
    memory_mib: Math.floor(totalmem() / (1024 * 1024)),
    cpu_millis: availableParallelism() * 1000,
    disk_bytes: disk.blocks * disk.bsize,
    disk_free_bytes: disk.bavail * disk.bsize,
  };
}
