import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';
import { scratchFolder } from './scratch.ts';

const dist = (name: string) => fileURLToPath(new URL(`../../dist/${name}.cjs`, import.meta.url));

/** The built daemon in a process of its own, as a user starts it. */
export class BuiltDaemon {
  readonly state_dir: string;
  readonly #program: string;
  readonly #args: string[];
  #child: ChildProcess | null = null;
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
    const child = spawn(
      process.execPath,
      [this.#program, ...fixed, '--shutdown-grace-ms', '500', ...this.#args],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    this.#child = child;
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      lines.push(line);
      const { msg, url } = line.startsWith('{') ? JSON.parse(line) : {};
      if (msg === 'listening') this.#port = Number(new URL(url).port);
      if (msg === 'ready') break;
    }
    child.stderr.resume();
    if (child.exitCode !== null) throw new Error(lines.join('\n'));
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Ends it by this signal. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
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

/** A running `sandboxctl`: what it has written so far, and how it ends. */
export class RunningCtl {
  readonly child;
  readonly ended: Promise<number | null>;
  #stdout: Buffer[] = [];
  #stderr = '';

  constructor(args: string[], env: NodeJS.ProcessEnv) {
    this.child = spawn(process.execPath, [dist('sandboxctl'), ...args], {
      env: { PATH: process.env.PATH, ...env },
    });
    this.child.stdout.on('data', (data: Buffer) => this.#stdout.push(data));
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.child.stdin.on('error', () => {});
    this.ended = once(this.child, 'close').then(([code]) => code);
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#stdout);
  }

  get stdout(): string {
    return this.bytes.toString();
  }

  get stderr(): string {
    return this.#stderr;
  }

  type(text: string | Buffer): this {
    this.child.stdin.write(text);
    return this;
  }

  /** Resolves once stdout and stderr together match. */
  async wrote(pattern: RegExp): Promise<RegExpExecArray> {
    return eventually(
      () => {
        const match = pattern.exec(this.stdout + this.stderr);
        if (!match) throw new Error(`${pattern} is not in ${JSON.stringify(this.stdout + this.stderr)}`);
        return match;
      },
      { timeout: 60_000, interval: 10 },
    );
  }

  /** Ends what is typed; resolves with how it ended. */
  async end(input = ''): Promise<{ code: number | null; stdout: string; stderr: string }> {
    this.child.stdin.end(input);
    const code = await this.ended;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }
}
