import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WatcherStatus } from '../../../src/contract/sandboxes.ts';
import { readCommits } from './commit-file.ts';
import { until } from './watched-tree.ts';

const PROGRAM = fileURLToPath(new URL('./watch-program.ts', import.meta.url));

/** The watch in a process of its own, to be killed or started with fewer rights. */
export class Program {
  readonly #child: ChildProcess;
  readonly #commits_file: string;
  #output = '';

  constructor(
    watch_dir: string,
    commits_file: string,
    events_file = '',
    { prefix = [], ...options }: { prefix?: string[]; uid?: number } = {},
  ) {
    const [command = '', ...args] = [
      ...prefix,
      process.execPath,
      PROGRAM,
      watch_dir,
      commits_file,
      events_file,
    ];
    this.#commits_file = commits_file;
    this.#child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => {
        this.#output += chunk;
      });
    }
  }

  /** The status when it was ready. */
  async ready(): Promise<WatcherStatus> {
    const line = () => /^ready (.*)$/m.exec(this.#output)?.[1];
    await until(
      () => line() !== undefined,
      () => this.#output,
    );
    return JSON.parse(line() ?? '');
  }

  /** What was told so far, as `operation path`. */
  told(): string[] {
    return readCommits(readFileSync(this.#commits_file, 'utf8')).flatMap(({ events }) =>
      events.map(({ payload }) => `${payload.event_type} ${payload.path}`),
    );
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill(signal);
    await ended;
  }
}
