/**
 * killable-daemon.ts DIRECTORY EVENTS_FILE REQUEST…: supervises like the daemon, so that a test can kill it. Events
 * are appended to the file, or refused where it is "-"; the processes are printed as one line of JSON. SIGUSR2 pauses.
 * A process named `lossless` waits for its first follower.
 */
import { appendFileSync } from 'node:fs';
import { pino } from 'pino';
import { systemClock } from '../../../src/base/clock.ts';
import { Supervisor } from '../../../src/process/supervisor.ts';

const [directory = '', events_file = '', ...requests] = process.argv.slice(2);
const supervisor = new Supervisor({
  clock: systemClock,
  log: pino({ level: 'silent' }),
  directory,
  emit: async (event, key) => {
    if (events_file === '-') throw new Error('no disk');
    appendFileSync(events_file, `${JSON.stringify({ key, event })}\n`);
  },
  environment: () => ({ PATH: process.env.PATH ?? '' }),
  default_user: null,
  grace_ms: 1_000,
});
await supervisor.start();
const started = await Promise.all(
  requests
    .map((request) => JSON.parse(request))
    .map((request) => supervisor.spawn(request, { lossless: request.name === 'lossless' })),
);
process.stdout.write(`${JSON.stringify(started.map((result) => result.process))}\n`);
process.on('SIGUSR2', () => supervisor.pause());
setInterval(() => {}, 1_000_000);
