import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Exit, type LogLine, logLines, RunningProgram } from '../../support/running-program.ts';
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

/** Less than a commit writes, and more than a thread that only wakes others. */
const COMMIT_BYTES = 4_096;

/** The built daemon in a process of its own. It ends with the scene. */
export class Daemon {
  readonly #program: RunningProgram;
  readonly state_dir: string;
  exit: Exit | null = null;
  #url: string | undefined;
  readonly #socket_path: string | undefined;

  private constructor(program: RunningProgram, state_dir: string, socket_path: string | undefined) {
    this.#program = program;
    this.#socket_path = socket_path;
    this.state_dir = state_dir;
    void program.exited.then((exit) => {
      this.exit = exit;
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
    const env = { ...(secret ? { SANDBOXD_WEBHOOK_SECRET: secret } : {}), ...settings.env };
    const program = new RunningProgram([...through, process.execPath, PROGRAM, ...args], { env });
    const daemon = new Daemon(program, state_dir, settings.socket_path);
    scene.undo(() => daemon.stop('SIGKILL'));
    if (settings.until !== 'nothing') await daemon.#reached(settings.until ?? 'ready');
    return daemon;
  }

  async #reached(msg: 'ready' | 'listening'): Promise<void> {
    await until(`the daemon is ${msg}`, () => this.told(msg) || this.exit);
    if (!this.told(msg))
      throw new Error(`the daemon ended: ${JSON.stringify(this.exit)}\n${this.#program.stderr}`);
  }

  get pid(): number {
    return this.#program.pid;
  }

  get stdout(): string {
    return this.#program.stdout;
  }

  /** Everything on stderr, a line each. */
  get stderr(): string[] {
    return this.#program.stderr.split('\n').slice(0, -1);
  }

  get url(): string {
    this.#url ??= this.log.find(({ msg }) => msg === 'listening')?.url;
    if (!this.#url) throw new Error(`the daemon has told no address:\n${this.#program.stderr}`);
    return this.#url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get log(): LogLine[] {
    return logLines(this.#program.stderr);
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
    this.#program.kill(signal);
  }

  /** Ends it and waits for that. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    return this.#program.stop(signal);
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
