import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type IPty, spawn } from '@lydell/node-pty';
import { MANAGER } from '../support/manager-program.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { managedSandbox } from './support/managed-sandbox.ts';
import { nowMs, percentile, sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { figure } from './support/table.ts';

const SANDBOXCTL = join(dirname(MANAGER), 'sandboxctl.cjs');
const KEYS = sized(600, 20);
const WARM_UP_KEYS = sized(50, 5);
/** As somebody types who types fast. */
const INTERVAL_MS = 10;
/** A line of a terminal holds no more than 4 096 characters. */
const LINE_KEYS = 500;
const MORE_MS = 5;

/** A program at a terminal that echoes keys. */
class Echo {
  readonly #pty: IPty;
  #shown = '';

  constructor(bench: Bench, args: string[]) {
    const env = { PATH: process.env.PATH ?? '', TERM: 'dumb', SANDBOXCTL_PROFILE: '', HOME: bench.folder() };
    this.#pty = spawn(SANDBOXCTL, [...args, 'run', '-it', '--', 'sh', '-c', 'echo begun; exec cat'], { env });
    this.#pty.onData((data) => {
      this.#shown += data;
    });
    bench.onEnd(() => this.#pty.kill());
  }

  async begun(): Promise<void> {
    while (!this.#shown.includes('begun')) await sleepMs(10);
  }

  /** Types a key and resolves with the time until it is shown, in ms. */
  async echo(key: string): Promise<number> {
    await sleepMs(INTERVAL_MS);
    this.#shown = '';
    const typed_ms = nowMs();
    return new Promise((resolve) => {
      const listener = this.#pty.onData((data) => {
        if (!data.includes(key)) return;
        listener.dispose();
        resolve(nowMs() - typed_ms);
      });
      this.#pty.write(key);
    });
  }

  async newLine(): Promise<void> {
    await this.echo('\r');
    await sleepMs(100);
  }
}

/** From a key to its echo at `sandboxctl run -it`: through the manager, against the daemon's own socket, key by key. */
export const cliKeystroke: Benchmark = {
  name: 'cliKeystroke',
  async run(bench) {
    const { manager_url, token, sandbox_id, socket_path } = await managedSandbox(bench, {
      resources: { cpu: 1 },
    });
    const token_file = join(bench.folder(), 'token');
    writeFileSync(token_file, token, { mode: 0o600 });
    const through = ['--manager', manager_url, '--token-file', token_file, '--sandbox', sandbox_id];
    const sides = {
      bare: new Echo(bench, ['--url', `unix:${socket_path}`]),
      ours: new Echo(bench, through),
    };
    for (const side of Object.values(sides)) await side.begun();
    const took = { bare: [] as number[], ours: [] as number[] };
    for (let i = 0; i < WARM_UP_KEYS + KEYS; i++) {
      // One after the other, in changing order: each meets the machine as it is now.
      for (const side of i % 2 === 0 ? (['bare', 'ours'] as const) : (['ours', 'bare'] as const)) {
        if (i % LINE_KEYS === LINE_KEYS - 1) await sides[side].newLine();
        const echoed_ms = await sides[side].echo(String.fromCharCode(97 + (i % 26)));
        if (i >= WARM_UP_KEYS) took[side].push(echoed_ms);
      }
    }
    for (const share of [0.5, 0.95]) {
      const [bare, ours] = [percentile(took.bare, share), percentile(took.ours, share)];
      const more_ms = ours - bare;
      bench.report({
        name: `key to echo through the manager, p${share * 100}; bare: the daemon's own socket`,
        bare: `${figure(bare)} ms`,
        ours: `${figure(ours)} ms`,
        ratio: `+${figure(more_ms)} ms`,
        wanted: share === 0.5 ? `≤ +${MORE_MS} ms` : '',
        verdict: share === 0.5 && more_ms > MORE_MS ? 'missed' : 'ok',
        measured: { ours, ratio: ours / bare },
      });
    }
  },
};
