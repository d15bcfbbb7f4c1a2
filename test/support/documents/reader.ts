import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Options } from 'execa';
import { onTestFinished } from 'vitest';
import { eventually } from '../eventually.ts';
import { IS_ROOT } from '../rights.ts';
import { runSync, succeeds } from '../run-sync.ts';
import { RunningProgram } from '../running-program.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** What `npm` does here: what it installs and builds is there already. */
const NPM = `#!/bin/sh
case "$*" in
  ci | 'run build') ;;
  start) exec node test/support/demo.ts ;;
  'run manager') exec node test/support/try-manager.ts ;;
  *) echo "npm $* is not known here" >&2; exit 64 ;;
esac
`;

/** Who reads the documents: `root` and `nobody` where the tests run as root; `self` otherwise. */
export type ReaderName = 'root' | 'nobody' | 'self';

/** The readers that this machine has. */
export const READERS: ReaderName[] = IS_ROOT ? ['root', 'nobody'] : ['self'];

/** Somebody in a checkout of their own, who types what the documents say. As root the ports are theirs alone. */
export class Reader {
  readonly name: ReaderName;
  readonly #shell: string;
  readonly #folder: string;
  readonly #namespace: string | null;

  constructor(name: ReaderName, shell: string) {
    this.name = name;
    this.#shell = shell;
    this.#folder = mkdtempSync(join(tmpdir(), 'sandboxd-reader-'));
    chmodSync(this.#folder, 0o755);
    const checkout = this.checkout;
    for (const path of ['package.json', 'src', 'test/support', 'fixtures/programs'])
      cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
    for (const path of ['node_modules', 'dist']) symlinkSync(join(ROOT, path), join(checkout, path));
    for (const path of ['bin', 'home']) mkdirSync(join(this.#folder, path));
    writeFileSync(join(this.#folder, 'bin/npm'), NPM, { mode: 0o755 });
    this.#namespace = name === 'self' ? null : `reader-${process.pid}-${name}-${shell}`;
    onTestFinished(() => this.#leave());
    if (name === 'nobody') runSync('chown', '-R', 'nobody:nogroup', this.#folder);
    if (this.#namespace === null) return;
    runSync('ip', 'netns', 'add', this.#namespace);
    runSync('ip', '-n', this.#namespace, 'link', 'set', 'lo', 'up');
  }

  get checkout(): string {
    return join(this.#folder, 'checkout');
  }

  /** Types a script. The first command that fails ends it. */
  type(script: string): Typed {
    const before = [
      ...(this.#namespace === null ? [] : ['nsenter', `--net=/run/netns/${this.#namespace}`]),
      ...(this.name === 'nobody' ? ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups'] : []),
    ];
    const command = [...before, this.#shell, '-ec', script];
    const path = [
      join(this.#folder, 'bin'),
      join(ROOT, 'node_modules/.bin'),
      '/usr/sbin:/usr/bin:/sbin:/bin',
    ];
    const env = { PATH: path.join(':'), HOME: join(this.#folder, 'home'), LANG: 'C.UTF-8' };
    return new Typed(command, { cwd: this.checkout, env, extendEnv: false });
  }

  #leave(): void {
    if (this.#namespace !== null) runSync('ip', 'netns', 'delete', this.#namespace);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** What was typed, running or at its end. */
export class Typed extends RunningProgram {
  constructor(command: string[], options: Options) {
    super(command, { ...options, detached: true });
    onTestFinished(() => this.end('SIGKILL'));
  }

  /** Resolves once its output contains a text; rejects with all of it where the script ends before, or fails. */
  async until(text: string): Promise<void> {
    await eventually(
      () => {
        const { exitCode, signalCode } = this.child;
        if (this.output.includes(text)) return;
        throw new Error(`${exitCode ?? signalCode ?? 'runs'}: no ${text} in\n${this.output}`);
      },
      { timeout: 120_000 },
    );
  }

  /** Ends it, with what it started in the background; resolves once nothing of it is left. A second signal would not wait. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const group = -this.pid;
    sendTo(group, signal);
    await eventually(
      () => {
        if (sendTo(group, 0)) throw new Error(`something is left of it:\n${this.output}`);
      },
      { timeout: 60_000 },
    );
  }
}

/** Whether the group exists. */
function sendTo(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(group, signal);
    return true;
  } catch {
    return false;
  }
}

/** Why somebody other than the owner of this checkout cannot use it; null if they can. */
export function unreachable(name: ReaderName): string | null {
  if (name !== 'nobody') return null;
  const as_nobody = ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups'];
  return succeeds(...as_nobody, 'ls', join(ROOT, 'dist')) ? null : 'nobody may not read this checkout';
}
