import type { Disk } from './disk.ts';
import { pathBelow, realPath } from './ignore.ts';
import { type FileStat, isDirectory } from './index/file-stat.ts';

interface RootGateOptions {
  watch_dir: string;
  own_paths: readonly string[];
  disk: Disk;
  log: { warn: (fields: object, message: string) => void };
}

/**
 * Decides which directory is accepted as `watch_dir`. A symbolic link is followed only if `watch_dir` was one at the
 * start: that is the operator's choice. A link that appears later is not followed: anyone who can write to the parent
 * directory could choose what is reported. Pseudo file systems and the daemon's own files are never accepted.
 */
export class RootGate {
  readonly #options: RootGateOptions;
  #was_link: boolean | null = null;
  /** The directory that was taken last: the same is taken again without another observation. */
  #accepted: Pick<FileStat, 'dev' | 'ino' | 'birth'> | null = null;
  #real: string | null = null;
  #refusal: string | null = null;

  constructor(options: RootGateOptions) {
    this.#options = options;
  }

  /** Why the directory at `watch_dir` is not accepted; null if it is, or if there is none. */
  get refusal(): string | null {
    return this.#refusal;
  }

  /** Whether the directory found at `watch_dir` is accepted; `found` is null if there is none. */
  accepts(found: FileStat | null): boolean {
    const accepted = this.#accepted;
    const is_same =
      found && accepted?.ino === found.ino && accepted.dev === found.dev && accepted.birth === found.birth;
    if (is_same && this.#refusal === null) return true;
    const is_link = this.#isLink();
    this.#was_link ??= is_link;
    this.#refuse(found && this.#reason(is_link));
    if (!found || this.#refusal !== null) return false;
    this.#accepted = found;
    this.#noteReal();
    return true;
  }

  #reason(is_link: boolean): string | null {
    const { disk, own_paths, watch_dir } = this.#options;
    const on = disk.fileSystem(watch_dir);
    if (on?.kind === 'pseudo')
      return `watch_dir is on ${on.name}, a pseudo file system, which is not watched`;
    if (is_link && !this.#was_link) return 'watch_dir was replaced by a symbolic link, which is not followed';
    const real = is_link && this.#real !== null ? realPath(watch_dir) : this.#real;
    if (real === null || real === this.#real) return null;
    const overlaps = own_paths
      .map(realPath)
      .some((own) => pathBelow(own, real) !== null || pathBelow(real, own) !== null);
    return overlaps ? "watch_dir leads to the daemon's own files, which are not watched" : null;
  }

  #refuse(reason: string | null): void {
    const { log, watch_dir } = this.#options;
    if (reason !== null && reason !== this.#refusal) log.warn({ watch_dir }, reason);
    this.#refusal = reason;
  }

  #noteReal(): void {
    const { log, watch_dir } = this.#options;
    const real = realPath(watch_dir);
    if (this.#real !== null && this.#real !== real) {
      log.warn({ watch_dir, from: this.#real, to: real }, 'watch_dir now leads to another directory');
    }
    this.#real = real;
  }

  #isLink(): boolean {
    const itself = this.#options.disk.probe(this.#options.watch_dir);
    return typeof itself !== 'string' && !isDirectory(itself.mode);
  }
}
