/**
 * table-program.ts DIRECTORY: supervises in a process table of its own a process that leaves behind one with neither
 * its session, its parent nor its environment. Prints `{stopped, resumed, ended}`: whether that one stood
 * still while paused, ran afterwards, and was gone when the supervisor had stopped.
 */
import { pino } from 'pino';
import { systemClock } from '../../../src/base/clock.ts';
import { readStatNow } from '../../../src/base/linux/procfs.ts';
import { Supervisor } from '../../../src/process/supervisor.ts';

const supervisor = new Supervisor({
  clock: systemClock,
  log: pino({ level: 'silent' }),
  directory: process.argv[2] ?? '',
  emit: async () => {},
  environment: () => ({ PATH: process.env.PATH ?? '' }),
  default_user: null,
  grace_ms: 100,
});
setInterval(() => {}, 1_000_000); // the clock does not keep a program alive
await supervisor.start();
const shell = 'env -i setsid sh -c "sleep 1000 >/dev/null 2>&1 & echo \\$!"';
const { process: view } = await supervisor.spawn({ shell });
await supervisor.finished(view.process_id);
const { stdout } = await supervisor.outputTail(view.process_id, 100);
const stray = Number(stdout);
const state = async () => readStatNow(stray)?.state ?? 'Z';
await supervisor.pause();
const stopped = (await state()) === 'T';
await supervisor.resume();
const resumed = 'RS'.includes(await state());
await supervisor.stop();
const ended = (await state()) === 'Z';
process.stdout.write(JSON.stringify({ stopped, resumed, ended }));
process.exit(0);
