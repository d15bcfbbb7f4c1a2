import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';
import { scratchFolder } from './scratch.ts';

/** The built program, as users run it. */
export const SANDBOXD = fileURLToPath(new URL('../../dist/sandboxd.cjs', import.meta.url));

if (!existsSync(SANDBOXD)) throw new Error(`${SANDBOXD} is not there: npm run build makes it`);

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
}

interface LogLine {
  level: string;
  msg: string;
  url?: string;
}

/** A running sandboxd. */
export class SandboxdProgram {
  readonly child: ChildProcess;
  readonly state_dir: string;
  readonly ended: Promise<Ended>;
  stdout = '';
  stderr = '';

  constructor(child: ChildProcess, state_dir: string) {
    this.child = child;
    this.state_dir = state_dir;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  }

  get pid(): number {
    return this.child.pid as number;
  }

  get log(): LogLine[] {
    const lines = this.stderr.split('\n').filter((line) => line.startsWith('{'));
    return lines.map((line) => JSON.parse(line) as LogLine);
  }

  /** Resolves with the log's line of this message. */
  async logged(msg: string): Promise<LogLine> {
    return eventually(
      () => {
        const line = this.stderr.endsWith('\n') ? this.log.find((each) => each.msg === msg) : undefined;
        if (line) return line;
        throw new Error(`no "${msg}" in: ${this.stderr}`);
      },
      { timeout: 60_000, interval: 10 },
    );
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

  /** Sends a signal to the daemon alone and waits for its end. */
  async end(signal: NodeJS.Signals): Promise<Ended> {
    this.child.kill(signal);
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
  const [command = '', ...rest] = [...through, process.execPath, SANDBOXD, ...fixed, ...args];
  const child = spawn(command, rest, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  });
  const program = new SandboxdProgram(child, folder);
  onTestFinished(async () => {
    // The first asks for the end, the second for no waiting.
    for (let i = 0; i < 2; i++) child.kill('SIGTERM');
    await program.ended;
  });
  return program;
}

/** Starts the program and waits until it is ready. */
export async function startSandboxd(args: string[], options: Launch = {}): Promise<SandboxdProgram> {
  const program = launch(args, options);
  await Promise.race([program.logged('ready'), failed(program)]);
  return program;
}

/** Runs the program to its end. */
export async function runSandboxd(args: string[], options: Launch = {}): Promise<SandboxdProgram & Ended> {
  const program = launch(args, options);
  return Object.assign(program, await program.ended);
}

async function failed(program: SandboxdProgram): Promise<never> {
  const { code, signal } = await program.ended;
  throw new Error(`sandboxd ended with ${code ?? signal}: ${program.stderr}`);
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
  const [program = '', ...args] = [...argv];
  const child = spawn(program, args, {
    env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  const daemon = new SandboxdProgram(child, state_dir);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await daemon.ended;
  });
  return daemon;
}
