import { createHash } from 'node:crypto';
import {
  chmodSync,
  constants,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODE_FLAGS } from '../../base/engine/flags.ts';
import { kernelRandom } from '../../base/entropy.ts';
import { StartError } from '../../contract/errors.ts';

/** The daemon's program on the host. */
export interface DaemonProgram {
  /** The Node binary that runs it. */
  node: string;
  /** The folder of the built programs. */
  dist: string;
  /** The folder of the packages with native code, which are not bundled. */
  packages: string;
}

/** An installed copy of the program, with the empty file and folder that cover host paths. */
export interface InstalledProgram extends DaemonProgram {
  /** The folder that holds all of it. */
  folder: string;
  empty_file: string;
  empty_folder: string;
  /** The folder of the commands for people, for the `PATH` of a sandbox's processes. */
  commands: string;
}

/** The folder of `sandboxctl` in an installed copy. */
export const COMMANDS = 'bin';
const SANDBOXCTL = `#!/bin/sh
here=\${0%/*}
exec "$here/../node" ${NODE_FLAGS.join(' ')} "$here/../dist/sandboxctl.cjs" "$@"
`;

const FOLDER = '.program';
const UNFINISHED = /^\.new-/;
const INSTALL_MAX_MS = 60 * 60 * 1000;
const KEY_LENGTH = 16;
const NATIVE_PACKAGES = /^(better-sqlite3|@lydell\/node-pty(-linux-\w+)?|(@koromix\/)?koffi(-linux-\w+)?)$/;
/** What no program needs: sources of native code, and code for another C library, which is loaded where there is one. */
const UNUSED = /^(better-sqlite3\/(deps|src)|koffi\/(doc|lib|vendor)|@koromix\/[^/]+\/musl_\w+)$/;

/** Finds the built daemon, beside the built manager or, from source, in `dist`. Throws StartError if it is missing. */
export function builtProgram(): DaemonProgram {
  const is_built = import.meta.url.endsWith('.cjs');
  const sandboxd = fileURLToPath(
    new URL(is_built ? './sandboxd.cjs' : '../../../dist/sandboxd.cjs', import.meta.url),
  );
  if (!existsSync(sandboxd)) throw new StartError(`${sandboxd} does not exist; run npm run build first`);
  const sqlite = dirname(createRequire(sandboxd).resolve('better-sqlite3/package.json'));
  return { node: process.execPath, dist: dirname(sandboxd), packages: dirname(sqlite) };
}

/**
 * Copies of the daemon's program below the data directory, one for each version: a daemon reads parts of its program
 * on first use, and keeps running while the program that it was started from is replaced.
 *
 * The copy of the Node binary is executable but not readable. The kernel therefore hides the memory of the daemon from
 * every unprivileged process, even of the same user: a sandbox's processes cannot read the webhook's secret.
 */
export class ProgramCopies {
  readonly #folder: string;
  readonly #source: DaemonProgram;

  constructor(data_dir: string, source: DaemonProgram) {
    this.#folder = join(data_dir, FOLDER);
    this.#source = source;
  }

  /** The current version: 16 hex digits derived from the program's files. */
  version(): string {
    const { node, dist } = this.#source;
    const files = [node, ...readdirSync(dist).map((name) => join(dist, name))].sort();
    const facts = files.map((file) => {
      const { size, mtimeMs } = statSync(file);
      return [basename(file), size, mtimeMs];
    });
    return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, KEY_LENGTH);
  }

  /** The copy of a version, created if it is missing. */
  installed(version: string): InstalledProgram {
    const folder = join(this.#folder, version);
    if (!existsSync(folder)) this.#install(folder);
    return programIn(folder);
  }

  /** Removes unused versions and incomplete copies. The current version is kept. */
  prune(used: ReadonlySet<string>, now_ms: number): void {
    const present = this.version();
    for (const name of existsSync(this.#folder) ? readdirSync(this.#folder) : []) {
      if (name === present || used.has(name)) continue;
      const path = join(this.#folder, name);
      // Another manager may be creating it right now.
      const made_ms = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
      if (UNFINISHED.test(name) && made_ms > now_ms - INSTALL_MAX_MS) continue;
      rmSync(path, { recursive: true, force: true });
    }
  }

  #install(folder: string): void {
    const next = join(this.#folder, `.new-${kernelRandom(6).toString('hex')}`);
    const { node, dist, packages, empty_file, empty_folder, commands } = programIn(next);
    mkdirSync(next, { recursive: true });
    try {
      writeFileSync(empty_file, '', { mode: 0o444 });
      mkdirSync(empty_folder, { mode: 0o555 });
      mkdirSync(commands);
      writeFileSync(join(commands, 'sandboxctl'), SANDBOXCTL);
      copyFileSync(this.#source.node, node, constants.COPYFILE_FICLONE);
      cpSync(this.#source.dist, dist, { recursive: true });
      // Node looks for this file upwards: in a sandbox the next ones would be the sandbox's own.
      writeFileSync(join(next, 'package.json'), '{}\n', { mode: 0o444 });
      for (const name of nativePackages(this.#source.packages)) {
        const filter = (path: string) => !UNUSED.test(relative(this.#source.packages, path));
        cpSync(join(this.#source.packages, name), join(packages, name), { recursive: true, filter });
      }
      makeReadable(next);
      chmodSync(node, 0o111);
      // Helpers of the daemon run it, which no process of the sandbox may trace either.
      const launchers = readdirSync(dist).filter((name) => /^launcher-[a-z0-9]+$/.test(name));
      for (const name of launchers) chmodSync(join(dist, name), 0o111);
      chmodSync(join(commands, 'sandboxctl'), 0o555);
      renameSync(next, folder);
    } catch (error) {
      rmSync(next, { recursive: true, force: true });
      // Another manager on this machine was faster.
      if (!existsSync(folder)) throw error;
    }
  }
}

/** The parts of an installed copy by its folder. */
export function programIn(folder: string): InstalledProgram {
  const within = (name: string) => join(folder, name);
  return {
    folder,
    node: within('node'),
    dist: within('dist'),
    packages: within('node_modules'),
    empty_file: within('empty'),
    empty_folder: within('empty.d'),
    commands: within(COMMANDS),
  };
}

/** Sandboxes run it as users of their own, whatever the masks under which it was built and installed. */
function makeReadable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) makeReadable(path);
    else if (entry.isFile()) chmodSync(path, statSync(path).mode & 0o100 ? 0o555 : 0o444);
  }
}

function nativePackages(packages: string): string[] {
  const names = readdirSync(packages).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(packages, name)).map((each) => `${name}/${each}`) : [name],
  );
  return names.filter((name) => NATIVE_PACKAGES.test(name));
}
