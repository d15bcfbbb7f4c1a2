import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { openDatabase } from '../../src/manager/database/database.ts';
import { needsIsolation } from './rights.ts';
import { logLines, RunningProgram } from './running-program.ts';

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
export class ManagerProgram extends RunningProgram {
  #url = '';

  /** Starts it. */
  static begin(
    options: string[],
    { program = MANAGER, env = {}, network_namespace }: Launch = {},
  ): ManagerProgram {
    const before = network_namespace ? ['nsenter', `--net=/run/netns/${network_namespace}`] : [];
    return new ManagerProgram([...before, process.execPath, program, ...options], { stdout: 'ignore', env });
  }

  /** Starts it and waits until it is ready, within `ready_ms`. */
  static async start(options: string[], ready_ms = READY_MS, launch: Launch = {}): Promise<ManagerProgram> {
    if (options.includes('local')) needsIsolation();
    const program = ManagerProgram.begin(options, launch);
    const end_ms = performance.now() + ready_ms;
    while (!(await program.#isReady())) {
      if (!program.is_running || performance.now() > end_ms) {
        program.kill('SIGKILL');
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
    await this.stop(signal);
  }

  get log(): string {
    return this.stderr;
  }

  /** Empty until it listens. */
  get url(): string {
    this.#url ||= logLines(this.log).find(({ msg }) => msg === 'listening')?.url ?? '';
    return this.#url;
  }
}

/** A token of `team_1` from a database that a manager will use, and that is made where it is not there. */
export async function firstToken(database: string, ...scopes: string[]): Promise<string> {
  await (await openDatabase(database)).close();
  const given = scopes.flatMap((scope) => ['--scope', scope]);
  return runManagerCommand('token', 'create', '--team', 'team_1', ...given, '--database', database);
}

/** What one command of the program prints; rejects where it fails, with `exitCode` and `stderr`. */
export async function runManagerCommand(...args: string[]): Promise<string> {
  const { stdout } = await execa(process.execPath, [MANAGER, ...args], { stripFinalNewline: false });
  return stdout.trim();
}
