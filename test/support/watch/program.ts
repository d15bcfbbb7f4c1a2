import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WatcherStatus } from '../../../src/contract/sandbox.ts';
import { RunningProgram } from '../running-program.ts';
import { readCommits } from './commit-file.ts';

const PROGRAM = fileURLToPath(new URL('./watch-program.ts', import.meta.url));

/** The watch in a process of its own, to be killed or started with fewer rights. */
export class Program {
  readonly #program: RunningProgram;
  readonly #commits_file: string;

  constructor(
    watch_dir: string,
    commits_file: string,
    events_file = '',
    { prefix = [], ...options }: { prefix?: string[]; uid?: number } = {},
  ) {
    const command = [...prefix, process.execPath, PROGRAM, watch_dir, commits_file, events_file];
    this.#commits_file = commits_file;
    this.#program = new RunningProgram(command, options);
  }

  /** The status when it was ready. */
  async ready(): Promise<WatcherStatus> {
    const [, status = ''] = await this.#program.wrote(/^ready (.*)\n/m);
    return JSON.parse(status);
  }

  /** What was told so far, as `operation path`. */
  told(): string[] {
    return readCommits(readFileSync(this.#commits_file, 'utf8')).flatMap(({ events }) =>
      events.map(({ payload }) => `${payload.event_type} ${payload.path}`),
    );
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.#program.stop(signal);
  }
}
