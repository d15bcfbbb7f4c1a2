import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RunningProgram } from '../../support/running-program.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** The build that is measured. */
export const DIST = process.env.BENCH_DIST ?? join(root, 'dist');
const BUILT = join(DIST, 'sandboxd.cjs');

/** What is measured: the built program, or its source where nothing is built. */
export const PROGRAM = existsSync(BUILT) ? BUILT : join(root, 'bin/sandboxd.ts');

const SANDBOXCTL = join(dirname(PROGRAM), `sandboxctl${extname(PROGRAM)}`);

export const SECRET = 'whole-bodies-only';

/** A port that nobody listens on. */
export const DOWN_URL = 'http://127.0.0.1:9/hook';

export interface DaemonSettings {
  state_dir: string;
  webhook_url: string;
  /** More of the command line. */
  options?: string[];
  env?: NodeJS.ProcessEnv;
}

interface Counts {
  pending: number;
  delivered: number;
}

/** The real program in a process of its own. */
export class Daemon {
  readonly #program: RunningProgram;
  readonly #state_dir: string;
  readonly url: string;

  private constructor(program: RunningProgram, state_dir: string, url: string) {
    this.#program = program;
    this.#state_dir = state_dir;
    this.url = url;
  }

  /** Returns when it is ready. */
  static async start(settings: DaemonSettings): Promise<Daemon> {
    const program = begin(settings);
    const { url = '' } = await program.logged('listening');
    await program.logged('ready');
    return new Daemon(program, settings.state_dir, url);
  }

  /** Ends it so long after its start, wherever that finds it. */
  static async startAndKill(settings: DaemonSettings, after_ms: number): Promise<void> {
    const program = begin(settings);
    setTimeout(() => program.kill(), after_ms);
    await program.exited;
  }

  get pid(): number {
    return this.#program.pid;
  }

  /** The header that control needs. */
  get authorization(): { authorization: string } {
    return { authorization: `Bearer ${readFileSync(this.#token_file, 'utf8').trim()}` };
  }

  get #token_file(): string {
    return join(this.#state_dir, 'control-token');
  }

  /** The command line of the same build's `sandboxctl`, for this daemon. */
  sandboxctl(...args: string[]): string[] {
    return [process.execPath, SANDBOXCTL, '--url', this.url, '--token-file', this.#token_file, ...args];
  }

  async outbox(): Promise<Counts> {
    const answer = await fetch(`${this.url}/api/v1/sandbox`, { headers: this.authorization });
    return ((await answer.json()) as { data: { outbox: Counts } }).data.outbox;
  }

  /** Ends it at once, or with SIGTERM as a shutdown does. */
  async stop(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    await this.#program.stop(signal);
  }
}

function begin({ state_dir, webhook_url, options = [], env = {} }: DaemonSettings): RunningProgram {
  // As users start it, or with a profiler.
  const node_options = process.env.BENCH_NODE_OPTIONS?.split(' ');
  const is_built = PROGRAM.endsWith('.cjs');
  const before = is_built && !node_options ? [] : [process.execPath, ...(node_options ?? [])];
  return new RunningProgram(
    [
      ...[...before, PROGRAM],
      ...['--webhook-url', webhook_url, '--state-dir', state_dir, '--port', '0', '--host', '127.0.0.1'],
      ...['--sandbox-id', 'sbx_bench', '--team-id', 'team_bench', '--outbox-max-bytes', String(2 ** 32)],
      ...options,
    ],
    { env: { ...env, SANDBOXD_WEBHOOK_SECRET: SECRET }, stdout: 'ignore' },
  );
}
