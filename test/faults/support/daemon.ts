import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type Answer, ask, type Question } from './ask.ts';
import type { Scene } from './scene.ts';
import { until } from './until.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

/** The built program. */
export const PROGRAM = process.env.FAULTS_SANDBOXD ?? join(ROOT, 'dist/sandboxd.cjs');

export const SECRET = 'made for the fault cases, ümlaut included';

export interface Settings {
  webhook_url?: string;
  /** Where it is not given, `state` in the scene's folder. */
  state_dir?: string;
  secret?: string;
  options?: string[];
  /** The main command. */
  command?: string[];
  env?: Record<string, string>;
  /** A command that the daemon is started through, such as `prlimit --nofile=64`. */
  through?: string[];
  /** Ask it over this Unix socket: it cannot be reached otherwise. */
  socket_path?: string;
  /** What to wait for; `nothing` for a start that may fail. */
  until?: 'ready' | 'listening' | 'nothing';
}

export interface LogLine {
  level?: string;
  msg?: string;
  [key: string]: unknown;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Less than a commit writes, and more than a thread that only wakes others. */
const COMMIT_BYTES = 4_096;

/** The built daemon in a process of its own. It ends with the scene. */
export class Daemon {
  readonly #child: ChildProcess;
  readonly state_dir: string;
  /** Everything on stderr, a line each. */
  readonly stderr: string[] = [];
  stdout = '';
  exit: Exit | null = null;
  #url: string | undefined;
  readonly #socket_path: string | undefined;

  private constructor(child: ChildProcess, state_dir: string, socket_path: string | undefined) {
    this.#child = child;
    this.#socket_path = socket_path;
    this.state_dir = state_dir;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    createInterface({ input: child.stderr as Readable }).on('line', (line) => this.#take(line));
    child.once('exit', (code, signal) => {
      this.exit = { code, signal };
    });
  }

  static async start(scene: Pick<Scene, 'path' | 'undo'>, settings: Settings): Promise<Daemon> {
    const {
      state_dir = scene.path('state'),
      secret = SECRET,
      options = [],
      command = [],
      through = [],
    } = settings;
    const args = [
      ...['--state-dir', state_dir, '--shutdown-grace-ms', '500'],
      ...(options.includes('--port') ? [] : ['--port', '0']),
      ...(settings.webhook_url ? ['--webhook-url', settings.webhook_url] : []),
      ...(settings.socket_path ? ['--control-socket', settings.socket_path] : []),
      ...['--sandbox-id', 'sbx-fault', '--team-id', 'team-fault'],
      ...options,
      ...(command.length > 0 ? ['--', ...command] : []),
    ];
    const [program, ...rest] = [...through, process.execPath, PROGRAM, ...args] as [string, ...string[]];
    const environment = {
      ...process.env,
      ...(secret ? { SANDBOXD_WEBHOOK_SECRET: secret } : {}),
      ...settings.env,
    };
    const child = spawn(program, rest, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    const daemon = new Daemon(child, state_dir, settings.socket_path);
    scene.undo(() => daemon.stop('SIGKILL'));
    if (settings.until !== 'nothing') await daemon.#reached(settings.until ?? 'ready');
    return daemon;
  }

  #take(line: string): void {
    this.stderr.push(line);
    const told = parsed(line);
    if (told?.msg === 'listening') this.#url = told.url as string;
  }

  async #reached(msg: 'ready' | 'listening'): Promise<void> {
    await until(`the daemon is ${msg}`, () => this.told(msg) || this.exit);
    if (!this.told(msg))
      throw new Error(`the daemon ended: ${JSON.stringify(this.exit)}\n${this.stderr.join('\n')}`);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get url(): string {
    if (!this.#url) throw new Error(`the daemon has told no address:\n${this.stderr.join('\n')}`);
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get log(): LogLine[] {
    return this.stderr.map(parsed).filter((line) => line !== null);
  }

  /** A line of the log whose message holds `text`. */
  told(text: string): LogLine | undefined {
    return this.log.find(({ msg }) => msg?.includes(text));
  }

  /** A request with the control token. */
  ask(path: string, question: Question = {}): Promise<Answer> {
    const token = join(this.state_dir, 'control-token');
    const authorization = existsSync(token) ? `Bearer ${readFileSync(token, 'utf8').trim()}` : '';
    return this.#ask(path, { ...question, headers: { authorization, ...question.headers } });
  }

  publish(payload: unknown, question: Question = {}): Promise<Answer> {
    return this.publishText(JSON.stringify({ payload }), question);
  }

  publishText(body: string | Buffer, question: Question = {}): Promise<Answer> {
    const headers = { 'content-type': 'application/json', ...question.headers };
    return this.#ask('/api/v1/webhook/publish', { ...question, method: 'POST', headers, body });
  }

  #ask(path: string, question: Question): Promise<Answer> {
    return ask(`${this.url}${path}`, { ...question, socket_path: this.#socket_path });
  }

  async run(command: string[], more: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const answer = await this.ask('/api/v1/processes', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ command, ...more }),
    });
    if (answer.status !== 201) throw new Error(`POST /processes: ${answer.status} ${answer.text}`);
    return answer.json?.data as Record<string, unknown>;
  }

  async sandbox(): Promise<{ outbox: Record<string, number>; state: string }> {
    const answer = await this.ask('/api/v1/sandbox');
    return answer.json?.data as { outbox: Record<string, number>; state: string };
  }

  async delivery(event_id: string): Promise<Delivery> {
    const answer = await this.ask(`/api/v1/webhook/deliveries/${event_id}`);
    return answer.json?.data as Delivery;
  }

  /** What `/readyz` says: its status, and why the daemon is not ready or degraded. */
  async readiness(): Promise<{ status: number; says: string }> {
    const { status, text } = await this.#ask('/readyz', {});
    return { status, says: text };
  }

  async metric(name: string): Promise<number> {
    const { text } = await this.#ask('/metrics', {});
    const line = text.split('\n').find((each) => each.startsWith(`${name} `) || each.startsWith(`${name}{`));
    return Number(line?.split(' ').at(-1));
  }

  /** The names of its threads. */
  threads(): string[] {
    const tasks = `/proc/${this.pid}/task`;
    return readdirSync(tasks).map((id) => readFileSync(`${tasks}/${id}/comm`, 'utf8').trim());
  }

  /** Whether a thread of its own has made a commit: before, the main thread makes them, and moves the files at some time. */
  commitsApart(): boolean {
    const tasks = `/proc/${this.pid}/task`;
    const threads = readdirSync(tasks).filter((id) => id !== String(this.pid));
    return threads.some((id) => {
      const read = (file: string) => readFileSync(`${tasks}/${id}/${file}`, 'utf8');
      const written_bytes = Number(/^wchar: (\d+)/m.exec(read('io'))?.[1]);
      return read('comm') === 'WorkerThread\n' && written_bytes > COMMIT_BYTES;
    });
  }

  /** The daemon's own resident memory. */
  residentBytes(): number {
    const pages = readFileSync(`/proc/${this.pid}/statm`, 'utf8').split(' ')[1];
    return Number(pages) * 4096;
  }

  openFiles(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it and waits for that. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    if (!this.exit) {
      const ended = once(this.#child, 'exit');
      this.#child.kill(signal);
      if (signal === 'SIGKILL') this.#child.kill('SIGCONT');
      await ended;
    }
    return this.ended();
  }

  /** Waits for its end. */
  async ended(within_ms = 20_000): Promise<Exit> {
    return until('the daemon ends', () => this.exit, within_ms);
  }
}

export interface Delivery {
  event_id: string;
  state: string;
  body: string;
  attempts: {
    attempt: number;
    started_at: string;
    duration_ms: number;
    status: number | null;
    error: string | null;
    next_attempt_at: string | null;
  }[];
}

function parsed(line: string): LogLine | null {
  try {
    return JSON.parse(line) as LogLine;
  } catch {
    return null;
  }
}
