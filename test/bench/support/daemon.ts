import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

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
  readonly #child: ChildProcess;
  readonly #state_dir: string;
  readonly url: string;

  private constructor(child: ChildProcess, state_dir: string, url: string) {
    this.#child = child;
    this.#state_dir = state_dir;
    this.url = url;
  }

  /** Returns when it is ready. */
  static async start(settings: DaemonSettings): Promise<Daemon> {
    const child = spawnDaemon(settings);
    const url = await listeningUrl(child, child.stderr as Readable);
    return new Daemon(child, settings.state_dir, url);
  }

  /** Ends it so long after its start, wherever that finds it. */
  static async startAndKill(settings: DaemonSettings, after_ms: number): Promise<void> {
    const child = spawnDaemon(settings);
    const ended = once(child, 'exit');
    child.stderr?.resume();
    setTimeout(() => child.kill('SIGKILL'), after_ms);
    await ended;
  }

  get pid(): number {
    return this.#child.pid as number;
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
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill(signal);
    await ended;
  }
}

function spawnDaemon({ state_dir, webhook_url, options = [], env = {} }: DaemonSettings): ChildProcess {
  // As users start it, or with a profiler.
  const node_options = process.env.BENCH_NODE_OPTIONS?.split(' ');
  const is_built = PROGRAM.endsWith('.cjs');
  const [command, ...args] =
    is_built && !node_options ? [PROGRAM] : [process.execPath, ...(node_options ?? []), PROGRAM];
  return spawn(
    command as string,
    [
      ...args,
      ...['--webhook-url', webhook_url, '--state-dir', state_dir, '--port', '0', '--host', '127.0.0.1'],
      ...['--sandbox-id', 'sbx_bench', '--team-id', 'team_bench', '--outbox-max-bytes', String(2 ** 32)],
      ...options,
    ],
    {
      env: { ...process.env, ...env, SANDBOXD_WEBHOOK_SECRET: SECRET },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
}

/** Reads the log to the line that tells the daemon is ready; throws with the log where it ends before. */
function listeningUrl(child: ChildProcess, log: Readable): Promise<string> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    let url = '';
    createInterface({ input: log }).on('line', (line) => {
      if (url !== '' && lines.length > 5) return;
      lines.push(line);
      if (!line.startsWith('{')) return;
      const told = JSON.parse(line) as { msg?: string; url?: string };
      if (told.msg === 'listening') url = told.url ?? '';
      if (told.msg === 'ready') resolve(url);
    });
    child.once('exit', () => reject(new Error(['the daemon ended:', ...lines].join('\n'))));
  });
}
