import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openDatabase } from '../../src/manager/database/database.ts';
import { needsIsolation } from './rights.ts';

/** The built program, as users run it. */
export const MANAGER = fileURLToPath(new URL('../../dist/sandbox-manager.cjs', import.meta.url));

if (!existsSync(MANAGER)) throw new Error(`${MANAGER} is not there: npm run build makes it`);

const READY_MS = 30_000;
const LOOK_MS = 10;

/** What is started otherwise than the built program is by a user. */
export interface Launch {
  program?: string;
  env?: Record<string, string>;
  /** A network namespace to start it in. */
  network_namespace?: string;
}

/** A running sandbox-manager, in a process of its own. */
export class ManagerProgram {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
  url = '';
  log = '';

  private constructor(child: ChildProcess) {
    this.child = child;
    this.ended = once(child, 'exit');
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
      this.url ||= /"url":"([^"]+)"[^\n]*"msg":"listening"/.exec(this.log)?.[1] ?? '';
    });
  }

  /** Starts it. */
  static begin(
    options: string[],
    { program = MANAGER, env = {}, network_namespace }: Launch = {},
  ): ManagerProgram {
    const before = network_namespace ? ['nsenter', `--net=/run/netns/${network_namespace}`] : [];
    const [file = '', ...args] = [...before, process.execPath, program, ...options];
    const child = spawn(file, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    });
    return new ManagerProgram(child);
  }

  /** Starts it and waits until it is ready, within `ready_ms`. */
  static async start(options: string[], ready_ms = READY_MS, launch: Launch = {}): Promise<ManagerProgram> {
    if (options.includes('local')) needsIsolation();
    const program = ManagerProgram.begin(options, launch);
    const { child } = program;
    const end_ms = performance.now() + ready_ms;
    while (!(await program.#isReady())) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > end_ms) {
        child.kill('SIGKILL');
        throw new Error(`sandbox-manager is not ready:\n${program.log}`);
      }
      await sleep(LOOK_MS);
    }
    return program;
  }

  async #isReady(): Promise<boolean> {
    if (this.url === '') return false;
    return fetch(`${this.url}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.child.kill(signal);
    await this.ended;
  }
}

/** A token of `team_1` from a database that a manager will use, and that is made where it is not there. */
export async function firstToken(database: string, ...scopes: string[]): Promise<string> {
  await (await openDatabase(database)).close();
  const given = scopes.flatMap((scope) => ['--scope', scope]);
  return runManagerCommand('token', 'create', '--team', 'team_1', ...given, '--database', database);
}

/** What one command of the program prints; rejects where it fails, with `code` and `stderr`. */
export async function runManagerCommand(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [MANAGER, ...args]);
  return stdout.trim();
}
