import { chmodSync, lstatSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { foldersAbove, placeDirectory, placeFile } from '../../rootfs.ts';
import { bind, bindAll, changeRoot, makePrivate, mount, move } from './kernel-calls.ts';
import { ROOT_FOLDERS } from './root-task.ts';

/**
 * The root of a sandbox: the image's, with what the sandbox has written on its volume over it. `folder`: the volume's
 * folder for it. `own`: mount points that no process of the sandbox may move, with the folders above them.
 */
export class RootOverlay {
  readonly #folder: string;
  readonly #own: string[];
  readonly #root: string;

  constructor(folder: string, own: string[]) {
    this.#folder = folder;
    this.#own = own;
    this.#root = join(folder, ROOT_FOLDERS.merged);
  }

  /** Makes the root, which nothing sees yet. Throws SystemError for what the kernel refuses. */
  prepare(): void {
    const { upper, work, merged } = ROOT_FOLDERS;
    for (const name of [upper, work, merged]) {
      const path = join(this.#folder, name);
      if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) continue;
      mkdirSync(path, { mode: 0o755 });
      chmodSync(path, 0o755);
    }
    makePrivate();
    const [upperdir, workdir] = [upper, work].map((name) => join(this.#folder, name));
    mount('overlay', this.#root, `lowerdir=/,upperdir=${upperdir},workdir=${workdir},userxattr`);
    // A folder can be renamed with the mount points in it; one that is a mount point itself cannot.
    for (const path of foldersAbove(this.#own)) {
      const there = placeDirectory({ rootfs: this.#root, owner: null }, path);
      bind(there, there);
    }
  }

  /**
   * Makes it the root of every process in the container, with all mounts where they were. `work_dir`: the mount that the
   * daemon is in. Throws SystemError.
   */
  enter(work_dir: string): void {
    const root = { rootfs: this.#root, owner: null };
    for (const path of topMounts(readFileSync('/proc/self/mountinfo', 'utf8'))) {
      if (path === this.#folder) continue;
      const is_directory = statSync(path).isDirectory();
      // The daemon is at work, and must find its files all the time; who is in a folder stays in it only if that is moved.
      const show = path === work_dir ? move : bindAll;
      show(path, is_directory ? placeDirectory(root, path) : placeFile(root, path, ''));
    }
    changeRoot(this.#root);
  }
}

/** The mounts directly on the root, in the order in which they were made, from the text of `/proc/self/mountinfo`. */
function topMounts(text: string): string[] {
  const mounts = text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [id, parent, , , path = ''] = line.split(' ');
      return { id, parent, path: unescaped(path) };
    });
  const root = mounts.findLast(({ path }) => path === '/');
  return mounts.filter(({ parent, path }) => parent === root?.id && path !== '/').map(({ path }) => path);
}

/** As proc(5) writes a path: spaces, tabs, newlines and backslashes in octal. */
function unescaped(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}
