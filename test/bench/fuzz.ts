import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FuzzReport, fuzzDaemon, judged } from '../support/daemon-fuzz.ts';
import { Daemon, DOWN_URL } from './support/daemon.ts';

/** `node test/bench/fuzz.ts [requests] [seed]`: raw requests at a daemon's TCP port, half of them with a wrong token. */
const [, , count = '50000', seed = '1'] = process.argv;

let is_good = true;
for (const wrong_token of [null, 'wrong']) {
  const folder = mkdtempSync(join(tmpdir(), 'sandboxd-fuzz-'));
  const state_dir = join(folder, 'state');
  const options = ['--shutdown-grace-ms', '0'];
  const daemon = await Daemon.start({ state_dir, webhook_url: DOWN_URL, options });
  const before_bytes = residentBytes(daemon.pid);
  const fuzz = await fuzzDaemon({
    port: Number(new URL(daemon.url).port),
    seed: Number(seed),
    count: Math.ceil(Number(count) / 2),
    wrong_token,
  });
  const is_alive = (await fetch(`${daemon.url}/healthz`).catch(() => null))?.status === 200;
  const processes = is_alive ? await processesOf(daemon) : Number.NaN;
  const grown_mib = Math.round((residentBytes(daemon.pid) - before_bytes) / 2 ** 20);
  await daemon.stop('SIGTERM');
  const report = judged(fuzz, state_dir);
  is_good &&= is_alive && processes === 0 && defects(report) === 0;
  console.log(line(report, `${wrong_token === null ? 'no token' : 'a wrong token'}, seed ${seed}`));
  console.log(`  healthy ${is_alive}, processes ${processes}, memory +${grown_mib} MiB`);
  for (const odd of report.odd_answers.slice(0, 5)) console.log(`  odd: ${odd}`);
  for (const forged of report.forged.slice(0, 5)) console.log(`  forged: ${forged}`);
  rmSync(folder, { recursive: true });
}
process.exitCode = is_good ? 0 : 1;

function defects({ lost, forged, odd_answers }: FuzzReport): number {
  return lost.length + forged.length + odd_answers.length;
}

function line(report: FuzzReport, how: string): string {
  const { requests, answers, publishes, lost, forged, odd_answers, statuses } = report;
  return (
    `${requests} raw requests (${how}): ${answers} answers ${JSON.stringify(statuses)}, ${publishes} publishes taken, ` +
    `${lost.length} valid ones lost, ${forged.length} invalid ones taken, ${odd_answers.length} answers without envelope`
  );
}

async function processesOf(daemon: Daemon): Promise<number> {
  const answer = await fetch(`${daemon.url}/api/v1/processes`, { headers: daemon.authorization });
  return ((await answer.json()) as { data: { processes: object[] } }).data.processes.length;
}

function residentBytes(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}
