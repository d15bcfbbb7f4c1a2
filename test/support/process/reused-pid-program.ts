/**
 * reused-pid-program.ts DIRECTORY HOW: supervises a process in a process table of its own, has it end, and gives its
 * number to a stranger that leaves a member in the session of that number. Then it does what HOW says to the ended
 * process and prints `{pid, stranger: {session, is_running}}`, or `stranger` null where it has gone.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { execa } from 'execa';
import { pino } from 'pino';
import { systemClock } from '../../../src/base/clock.ts';
import { bootTicks, readStatNow } from '../../../src/base/linux/procfs.ts';
import { Supervisor } from '../../../src/process/supervisor.ts';

const [directory = '', how = ''] = process.argv.slice(2);

/** Never called back: nothing is noticed but what a verb looks at by itself. */
const stopped_clock = { ...systemClock, after: () => ({ cancel: () => {} }) };

async function supervise(clock = systemClock): Promise<Supervisor> {
  const supervisor = new Supervisor({
    clock,
    log: pino({ level: 'silent' }),
    directory,
    emit: async () => {},
    environment: () => ({ PATH: process.env.PATH ?? '' }),
    default_user: null,
    grace_ms: 100,
  });
  await supervisor.start();
  return supervisor;
}

/** The next process to be started gets this number, unless a thread takes it first. */
async function giveNumberToStranger(pid: number): Promise<number> {
  for (;;) {
    writeFileSync('/proc/sys/kernel/ns_last_pid', String(pid - 1));
    const leader = execa('sh', ['-c', 'sleep 1000 >/dev/null & echo $!'], {
      detached: true,
      env: { PATH: process.env.PATH },
      extendEnv: false,
      stdin: 'ignore',
      stderr: 'ignore',
    });
    const { stdout } = await leader;
    if (leader.pid === pid) return Number(stdout);
    process.kill(Number(stdout), 'SIGKILL');
  }
}

setInterval(() => {}, 1_000_000); // the clock does not keep a program alive
const first = await supervise();
const lasts = how === 'signal';
const command = (lasts ? ['sleep', '1000'] : ['true']) as [string, ...string[]];
const { process: view } = await first.spawn({ command, process_id: 'old' });
const supervisor = lasts ? await supervise(stopped_clock) : first;
if (lasts) process.kill(view.pid, 'SIGKILL');
await first.finished('old');
// A number is not given out again within the tick of the clock in which it became free.
for (const ended_ticks = bootTicks(); bootTicks() === ended_ticks; ) await setTimeout(1);
const stranger = await giveNumberToStranger(view.pid);

/** Another daemon on the same folder; `told`: the end is in the record. */
async function again(told: boolean): Promise<Supervisor> {
  await first.stop();
  const file = join(directory, 'old/process.json');
  const record = JSON.parse(readFileSync(file, 'utf8').trim().split('\n').at(-1) ?? '');
  if (!told)
    Object.assign(record, { end: null, is_final: false, run: { ...record.run, ended_ticks: undefined } });
  writeFileSync(file, JSON.stringify(record));
  return supervise();
}

const verbs: Record<string, () => unknown> = {
  remove: () => first.remove('old'),
  pause: () => first.pause(),
  stop: () => first.stop(),
  'stop of the next daemon': async () => (await again(true)).stop(),
  'stop of a daemon that learns of the end': async () => (await again(false)).stop(),
  signal: () => supervisor.signal('old', 'SIGKILL'),
};
await (async () => verbs[how]?.())().catch(() => {});
const stat = readStatNow(stranger);
const seen = stat && { session: stat.session, is_running: 'RS'.includes(stat.state) };
process.stdout.write(JSON.stringify({ pid: view.pid, stranger: seen }));
process.exit(0);
