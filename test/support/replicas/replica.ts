import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CuttingProxy, type Moment } from '../cutting-proxy.ts';
import { ManagerProgram } from '../manager-program.ts';

const READY_MS = 60_000;
const ANSWER_MS = 30_000;
const WRONG = [400, 401, 403, 405, 422];

/** What a replica answered; null: nothing came back, and what was asked may have been done or not. */
export type Answered = {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
  data: any;
  message: string;
} | null;

/** How a replica is run. */
export interface ReplicaLaunch {
  name: string;
  folder: string;
  program: string;
  /** All options but the database. */
  options: string[];
  token: string;
}

/** A manager in a process of its own, with a clock of its own and its own way to the database: all of them can fail. */
export class Replica {
  readonly name: string;
  readonly #launch: ReplicaLaunch;
  readonly #proxy: CuttingProxy;
  readonly #clock: string;
  #program: ManagerProgram | null = null;
  #url = '';
  #earlier_log = '';

  private constructor(launch: ReplicaLaunch, proxy: CuttingProxy) {
    this.name = launch.name;
    this.#launch = launch;
    this.#proxy = proxy;
    this.#clock = join(launch.folder, `clock-${launch.name}`);
    this.stepClock(0);
  }

  /** Not started. `database`: any URL of the server. */
  static async open(launch: ReplicaLaunch, database: string): Promise<Replica> {
    return new Replica(launch, await CuttingProxy.start(database));
  }

  async start(database: string): Promise<void> {
    const { program, options } = this.#launch;
    const env = { SHIFTED_CLOCK: this.#clock };
    const all = ['--database', this.#proxy.urlOf(database), ...options];
    this.#program = await ManagerProgram.start(all, READY_MS, { program, env });
    this.#url = this.#program.url;
  }

  /** What it has logged, in all its lives. */
  get log(): string {
    return this.#earlier_log + (this.#program?.log ?? '');
  }

  /** Whether it has ended although nobody killed it. */
  get has_ended(): boolean {
    return this.#program !== null && this.#program.child.exitCode !== null;
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#program?.child.kill('SIGCONT');
    if (!this.has_ended) await this.#program?.end(signal);
    this.#earlier_log = `${this.log}-- ${signal}\n`;
    this.#program = null;
  }

  freeze(): void {
    this.#program?.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#program?.child.kill('SIGCONT');
  }

  /** Sets its wall clock off from the true time. */
  stepClock(shift_ms: number): void {
    writeFileSync(this.#clock, String(shift_ms));
  }

  /** Cuts its connections at the n-th statement from now on. */
  cutAt(n: number, moment: Moment): void {
    this.#proxy.cutAt(n, moment);
  }

  /** Whether that has come; if not, it no longer will. */
  callOffCut(): boolean {
    return this.#proxy.disarm();
  }

  /** Why it has refused or not answered, and how often. */
  readonly refusals = new Map<string, number>();

  /** Throws where what is asked for is wrong by itself. */
  async ask(method: string, path: string, body?: object, key?: string): Promise<Answered> {
    const answer = await this.#ask(method, path, body, key);
    if (WRONG.includes(answer?.status ?? 0)) throw new Error(`${method} ${path}: ${answer?.message}`);
    if (answer === null || answer.status >= 300) {
      const why = answer === null ? 'no answer' : `${answer.status} ${answer.message}`;
      this.refusals.set(why, (this.refusals.get(why) ?? 0) + 1);
    }
    return answer;
  }

  async #ask(method: string, path: string, body?: object, key?: string): Promise<Answered> {
    try {
      const response = await fetch(`${this.#url}/api/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#launch.token}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      const { data, error } = JSON.parse(await response.text());
      return { status: response.status, data, message: error?.message ?? '' };
    } catch {
      return null;
    }
  }

  async stop(): Promise<void> {
    this.thaw();
    await this.kill('SIGTERM');
    this.#proxy.stop();
  }
}
