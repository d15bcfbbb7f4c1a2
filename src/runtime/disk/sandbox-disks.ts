import {
  chmodSync,
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { toolProblem } from '../../base/run-tool.ts';
import { ApiError } from '../../contract/errors.ts';
import type { SandboxFiles } from '../local/sandbox-files.ts';
import type { Begin } from '../steps.ts';

const MIB = 1024 * 1024;
/** The smallest disk: a journal, and room for the sandbox's daemon. */
const DISK_MIN_MIB = 16;
/**
 * An ext4 file system that keeps its journal, so that what the daemon has synced outlives a power cut. One percent is kept
 * for the host's root, who takes the outbox of a sandbox that has filled its disk.
 */
const FORMAT = [
  ...['-q', '-F', '-b', '4096', '-i', '8192', '-m', '1', '-J', 'size=4'],
  ...['-E', 'lazy_itable_init=1,lazy_journal_init=1,nodiscard'],
];
/** A probe's folder, with the pid of its manager. */
const PROBE = /^\.disk-probe-(\d+)$/;
/** `noinit_itable`: the kernel would write the tables of all the inodes that nobody uses. */
const MOUNTED = ['-t', 'ext4', '-o', 'loop,nosuid,nodev,noinit_itable'];

/**
 * Bounds what sandboxes can write by giving each a file system of its own, kept in one file of its directory and
 * mounted over a loop device, which the kernel releases with the mount. Needs root. Where it is not possible, sandboxes
 * are directories as before, and a limitation says so. Source: contract section 7, `resources.disk`.
 */
export class SandboxDisks {
  #why_not: string | null;

  /** `why_not`: the reason if disks are not to be bounded, null if the machine decides. */
  constructor(why_not: string | null) {
    this.#why_not = process.getuid?.() === 0 ? why_not : (why_not ?? 'the manager is not root');
  }

  /** Tries one out, in a mount namespace that ends with the attempt. Never throws for what the machine refuses. */
  async check(data_dir: string): Promise<void> {
    if (this.#why_not !== null) return;
    for (const name of readdirSync(data_dir)) {
      const pid = PROBE.exec(name)?.[1];
      const is_left = pid !== undefined && (pid === String(process.pid) || !existsSync(`/proc/${pid}`));
      if (is_left) rmSync(join(data_dir, name), { recursive: true, force: true });
    }
    const folder = join(data_dir, `.disk-probe-${process.pid}`);
    const image = join(folder, 'disk.img');
    mkdirSync(folder, { mode: 0o700 });
    try {
      const apart = ['--mount', '--propagation', 'private'];
      this.#why_not =
        (await format(image, DISK_MIN_MIB)) ??
        (await toolProblem('unshare', ...apart, 'mount', ...MOUNTED, image, folder));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  /** What is not bounded, a phrase; known after `check`. */
  limitations(): string[] {
    return this.#why_not === null ? [] : [`the disk of sandboxes is not limited: ${this.#why_not}`];
  }

  /** Makes a sandbox's disk of this size and mounts it. Throws `internal_error`. */
  async make(files: SandboxFiles, disk_mib: number, begin: Begin): Promise<void> {
    if (this.#why_not !== null) return;
    await begin('format the disk');
    mkdirSync(files.disk, { mode: 0o700 });
    const why_unformatted = await format(files.disk_image, Math.max(disk_mib, DISK_MIN_MIB));
    if (why_unformatted === null) await begin('mount the disk');
    const why = why_unformatted ?? (await toolProblem('mount', ...MOUNTED, files.disk_image, files.disk));
    if (why !== null) throw new ApiError('internal_error', `The sandbox's disk could not be made: ${why}`);
    chmodSync(files.disk, 0o700);
    // Now, while there is room for it.
    mkdirSync(files.outbox, { mode: 0o700 });
  }

  /** Mounts a sandbox's disk if it is not mounted, as after a restart of the machine. Null, or why it cannot be. */
  async attach(files: SandboxFiles): Promise<string | null> {
    if (!existsSync(files.disk_image) || isMounted(files)) return null;
    return toolProblem('mount', ...MOUNTED, files.disk_image, files.disk);
  }

  /** Unmounts a sandbox's disk, which is removed next; nothing may run on it. Idempotent. Throws if it stays. */
  async detach(files: SandboxFiles): Promise<void> {
    if (!isMounted(files)) return;
    // What of large files is not written yet would be written now.
    await toolProblem('find', files.rootfs, '-xdev', '-type', 'f', '-size', '+1M', '-delete');
    // Somebody on the host may look at it; then it goes as soon as they have left.
    const why =
      (await toolProblem('umount', files.disk)) && (await toolProblem('umount', '--lazy', files.disk));
    if (why !== null && isMounted(files)) throw new Error(`${files.disk} cannot be unmounted: ${why}`);
  }
}

/**
 * All its space is taken from the node's disk now, in one step: a file system that finds no room for its own tables goes
 * read-only, and then whatever fills the node's disk would harm all sandboxes. Where there is not as much, or the file
 * system cannot do it, the image is sparse.
 */
async function format(image: string, size_mib: number): Promise<string | null> {
  const file = openSync(image, 'wx', 0o600);
  ftruncateSync(file, size_mib * MIB);
  closeSync(file);
  await toolProblem('fallocate', '--length', `${size_mib}MiB`, image);
  return toolProblem('mkfs.ext4', ...FORMAT, image);
}

function isMounted({ disk, directory }: SandboxFiles): boolean {
  const [inside, outside] = [disk, directory].map((path) => statSync(path, { throwIfNoEntry: false })?.dev);
  return inside !== undefined && outside !== undefined && inside !== outside;
}
