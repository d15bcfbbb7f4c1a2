import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { RunningProgram } from './running-program.ts';
import { scratchFolder } from './scratch.ts';

const dist = (name: string) => fileURLToPath(new URL(`../../dist/${name}.cjs`, import.meta.url));

/** The built daemon in a process of its own, as a user starts it. */
export class BuiltDaemon {
  readonly state_dir: string;
  readonly #program: string;
  readonly #args: string[];
  #running: RunningProgram | null = null;
  #port = 0;

  private constructor(state_dir: string, program: string, args: string[]) {
    this.state_dir = state_dir;
    this.#program = program;
    this.#args = args;
  }

  /** Ready; it ends with the present test. */
  static start(...args: string[]): Promise<BuiltDaemon> {
    return BuiltDaemon.startAt(dist('sandboxd'), ...args);
  }

  /** The same of another build, by the path of its `sandboxd.cjs`. */
  static async startAt(program: string, ...args: string[]): Promise<BuiltDaemon> {
    const daemon = new BuiltDaemon(join(scratchFolder(), 'state'), program, args);
    onTestFinished(() => daemon.end('SIGTERM'));
    await daemon.restart();
    return daemon;
  }

  /** Starts it on the same state and port. */
  async restart(): Promise<void> {
    const fixed = ['--state-dir', this.state_dir, '--host', '127.0.0.1', '--port', String(this.#port)];
    const command = [process.execPath, this.#program, ...fixed, '--shutdown-grace-ms', '500', ...this.#args];
    const running = new RunningProgram(command, { stdout: 'ignore' });
    this.#running = running;
    const { url = '' } = await running.logged('listening');
    this.#port = Number(new URL(url).port);
    await running.logged('ready');
  }

  get pid(): number {
    return this.#running?.pid ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Ends it by this signal. */
  async end(signal: NodeJS.Signals): Promise<void> {
    await this.#running?.stop(signal);
  }

  /** The `data` that the API answers. */
  // biome-ignore lint/suspicious/noExplicitAny: what the API answers is what a test looks at.
  async ask(method: string, path: string, body?: object): Promise<any> {
    const token = readFileSync(join(this.state_dir, 'control-token'), 'utf8').trim();
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      ...(body ? { body: JSON.stringify(body) } : {}),
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    });
    const text = await response.text();
    return text === '' ? undefined : JSON.parse(text).data;
  }

  /** A `sandboxctl` that talks to it. */
  ctl(...args: string[]): RunningCtl {
    return new RunningCtl(args, { SANDBOXD_URL: this.url, SANDBOXD_STATE_DIR: this.state_dir });
  }
}

/** A running `sandboxctl`. */
export class RunningCtl extends RunningProgram {
  declare readonly child: ChildProcessWithoutNullStreams;

  constructor(args: string[], env: NodeJS.ProcessEnv) {
    super([process.execPath, dist('sandboxctl'), ...args], {
      stdin: 'pipe',
      env: { PATH: process.env.PATH, ...env },
      extendEnv: false,
    });
  }

  type(text: string | Buffer): this {
    this.child.stdin.write(text);
    return this;
  }

  /** Ends what is typed; resolves with how it ended. */
  async end(input = ''): Promise<{ code: number | null; stdout: string; stderr: string }> {
    this.child.stdin.end(input);
    const { code } = await this.ended;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }
}
