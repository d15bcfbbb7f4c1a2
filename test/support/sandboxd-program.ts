import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Options } from 'execa';
import { onTestFinished } from 'vitest';
import { type Exit, type LogLine, logLines, RunningProgram } from './running-program.ts';
import { scratchFolder } from './scratch.ts';

/** The built program, as users run it. */
export const SANDBOXD = fileURLToPath(new URL('../../dist/sandboxd.cjs', import.meta.url));

if (!existsSync(SANDBOXD)) throw new Error(`${SANDBOXD} is not there: npm run build makes it`);

/** A running sandboxd. */
export class SandboxdProgram extends RunningProgram {
  readonly state_dir: string;

  constructor(command: readonly string[], options: Options, state_dir: string) {
    super(command, { ...options, extendEnv: false });
    this.state_dir = state_dir;
  }

  get log(): LogLine[] {
    return logLines(this.stderr);
  }

  get url(): string {
    return this.log.find(({ msg }) => msg === 'listening')?.url ?? '';
  }

  get token(): string {
    return readFileSync(join(this.state_dir, 'control-token'), 'utf8').trim();
  }

  /** A request to the API with the control token; resolves with the status and what was answered. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the daemon answers.
  async call(method: string, path: string, body?: unknown): Promise<{ status: number; data: any }> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const { data } = (await response.json()) as { data: unknown };
    return { status: response.status, data };
  }

  /** Publishes JSON text; resolves with the event id. */
  async publish(payload: string): Promise<string> {
    const response = await fetch(`${this.url}/api/v1/webhook/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"payload":${payload}}`,
    });
    const { data } = (await response.json()) as { data: { event_id: string } };
    return data.event_id;
  }

  /** Sends a signal to the daemon alone and waits for its end, with all that it writes. */
  end(signal: NodeJS.Signals): Promise<Exit> {
    this.kill(signal);
    return this.ended;
  }
}

export interface Launch {
  env?: Record<string, string>;
  state_dir?: string;
  /** Working directory of the daemon. */
  cwd?: string;
  /** A command that replaces itself by the program, such as `unshare --mount`. */
  through?: string[];
}

/** Spawns the program on a port of its own; it has ended when the test has. */
export function launch(args: string[], launch: Launch = {}): SandboxdProgram {
  const { env = {}, state_dir, cwd, through = [] } = launch;
  const folder = state_dir ?? join(scratchFolder(), 'state');
  const fixed = ['--port', '0', '--state-dir', folder];
  const command = [...through, process.execPath, SANDBOXD, ...fixed, ...args];
  const program = new SandboxdProgram(command, { env: { PATH: process.env.PATH, ...env }, cwd }, folder);
  onTestFinished(async () => {
    // The first asks for the end, the second for no waiting.
    for (let i = 0; i < 2; i++) program.kill('SIGTERM');
    await program.ended;
  });
  return program;
}

/** Starts the program and waits until it is ready. */
export async function startSandboxd(args: string[], options: Launch = {}): Promise<SandboxdProgram> {
  const program = launch(args, options);
  await program.logged('ready');
  return program;
}

/** Runs the program to its end. */
export async function runSandboxd(args: string[], options: Launch = {}): Promise<SandboxdProgram & Exit> {
  const program = launch(args, options);
  return Object.assign(program, await program.ended);
}

export interface Given {
  env?: Record<string, string>;
  uid?: number;
  state_dir?: string;
}

/** Starts `argv` as a user would, without Node in between; it has ended when the test has. */
export function startProgram(
  argv: string[],
  { env = {}, uid, state_dir = join(scratchFolder(), 'state') }: Given = {},
) {
  const path = `${dirname(process.execPath)}:/usr/bin:/bin`;
  const daemon = new SandboxdProgram(argv, { env: { PATH: path, ...env }, uid, gid: uid }, state_dir);
  onTestFinished(async () => void (await daemon.end('SIGKILL')));
  return daemon;
}
