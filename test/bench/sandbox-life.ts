import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '../support/manager/manager-client.ts';
import { ManagerProgram } from '../support/manager-program.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { DIST } from './support/daemon.ts';
import { median, nowMs } from './support/numbers.ts';
import { cpuMs } from './support/process-figures.ts';
import { sized } from './support/size.ts';
import { figure, skipped } from './support/table.ts';

const SANDBOXES = sized(200, 10);
const AT_ONCE = 8;
const TURNS = sized(8, 1);
/** In which the engine still compiles what it finds busy. */
const TURNS_TO_WARM_UP = sized(3, 0);
const SCOPES = ['--scope', 'sandboxes:write'];
const HOOK = { url: 'http://127.0.0.1:9/hook', secret: 'a secret made for this run' };

/**
 * What the manager spends on a claim, a fork and a deletion, without a runtime: the CPU time of its process, and the rate
 * with eight at once. Told for the comparison of builds; a claim with a runtime is `network-claim`.
 */
export const sandboxLife: Benchmark = {
  name: 'sandbox-life',
  async run(bench) {
    await live(bench, `sqlite:${join(bench.folder(), 'manager.db')}`, 'SQLite');
    if (!postgresPrograms())
      return bench.report(skipped('sandbox life, PostgreSQL', 'PostgreSQL is missing'));
    const server = await startPostgres();
    bench.onEnd(() => server.end());
    await live(bench, await server.database(), 'PostgreSQL');
  },
};

async function live(bench: Bench, database: string, name: string): Promise<void> {
  const program = join(DIST, 'sandbox-manager.cjs');
  const place = ['--database', database];
  const manager = await ManagerProgram.start(
    [
      ...['--listen', '127.0.0.1:0', '--runtime', 'none', ...place],
      ...['--secret-key-file', join(bench.folder(), 'key'), '--allow-webhook-cidr', '127.0.0.0/8'],
    ],
    undefined,
    { program },
  );
  bench.onEnd(() => manager.end('SIGTERM'));
  const command = [program, 'token', 'create', '--team', 'team_bench', ...SCOPES, ...place];
  const { stdout } = await promisify(execFile)(process.execPath, command);
  const owner = new Client(() => manager.url, stdout.trim());
  const verbs = { claim: new Figures(), fork: new Figures(), deletion: new Figures() };
  const { pid = 0 } = manager.child;
  for (let turn = 0; turn < TURNS; turn++) {
    const claimed = await verbs.claim.take(pid, Array(SANDBOXES).fill(''), () =>
      owner.claim({ webhook: HOOK, env_vars: { A: '1' } }),
    );
    const forked = await verbs.fork.take(pid, claimed, async (id) => {
      const { data } = await owner.post(`/api/v1/sandboxes/${id}/fork`, {});
      return data.sandbox_id as string;
    });
    await verbs.deletion.take(pid, [...claimed, ...forked], (id) =>
      owner.call('DELETE', `/api/v1/sandboxes/${id}`),
    );
  }
  for (const [verb, figures] of Object.entries(verbs)) {
    bench.report({
      name: `CPU time of the manager for a ${verb}, ${name}`,
      ...{
        bare: '',
        ours: `${figure(median(figures.cpu_us.slice(TURNS_TO_WARM_UP)))} µs`,
        ratio: '',
        wanted: 'to know',
        verdict: 'ok',
      },
    });
    bench.report({
      name: `a ${verb}, ${AT_ONCE} at once, ${name}`,
      ...{
        bare: '',
        ours: `${figure(median(figures.per_s.slice(TURNS_TO_WARM_UP)))} /s`,
        ratio: '',
        wanted: 'to know',
        verdict: 'ok',
      },
    });
  }
}

class Figures {
  readonly cpu_us: number[] = [];
  readonly per_s: number[] = [];

  /** Does something with each, some at once, and notes what that has cost. */
  async take<From, To>(pid: number, all: From[], work: (each: From) => Promise<To>): Promise<To[]> {
    const results: To[] = [];
    const [began_ms, began_cpu_ms] = [nowMs(), cpuMs(pid)];
    const left = all.values();
    const worker = async () => {
      for (const each of left) results.push(await work(each));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    this.cpu_us.push(((cpuMs(pid) - began_cpu_ms) * 1000) / all.length);
    this.per_s.push((all.length * 1000) / (nowMs() - began_ms));
    return results;
  }
}
