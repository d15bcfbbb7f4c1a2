import { readdirSync, statfsSync, statSync } from 'node:fs';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { DISK_IMAGE } from './sandbox-files.ts';

/** The machine's resources, the limits for sandboxes if no option sets lower ones. Source: contract section 7, `--node-…`. */
export interface NodeResources {
  memory_mib: number;
  cpu_millis: number;
  /** What the data directory's file system has for sandboxes: what is free, and what their disks take already. */
  disk_bytes: number;
}

/** Reads the machine's resources; throws if `data_dir` does not exist. */
export function nodeResources(data_dir: string): NodeResources {
  return {
    memory_mib: Math.floor(totalmem() / (1024 * 1024)),
    cpu_millis: availableParallelism() * 1000,
    disk_bytes: freeDiskBytes(data_dir) + imagesIn(data_dir),
  };
}

/** What is free of the data directory's file system. */
export function freeDiskBytes(data_dir: string): number {
  const disk = statfsSync(data_dir);
  return disk.bavail * disk.bsize;
}

/** The bytes that sandboxes' disks take. */
function imagesIn(data_dir: string): number {
  const images = readdirSync(data_dir).map((name) => join(data_dir, name, DISK_IMAGE));
  return images.reduce(
    (sum, image) => sum + (statSync(image, { throwIfNoEntry: false })?.blocks ?? 0) * 512,
    0,
  );
}
