import { join } from 'node:path';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { ClockWatch } from '../../src/manager/clock-watch.ts';
import { DatabaseClock } from '../../src/manager/database/database-clock-store.ts';
import { opened } from '../support/manager/outbox.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { scratchFolder } from '../support/scratch.ts';

it('a machine whose clock is off is told when it begins and when it ends, and not in between', async () => {
  const machine = new ManualClock();
  const lines: [string, number][] = [];
  const log = pino({
    hooks: {
      logMethod: ([facts, text]) => void lines.push([String(text), (facts as { offset_s: number }).offset_s]),
    },
  });
  const database = await opened(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const watch = new ClockWatch(await DatabaseClock.open(database, machine), log);
  const { run } = watch.job();
  await run();
  expect(watch.troubles()).toEqual([]);
  machine.step(-90_000);
  await run();
  await run();
  expect(watch.troubles()).toEqual(["the clock of this machine is 90.0 s behind the manager's time"]);
  machine.step(90_000);
  await run();
  await run();
  expect(watch.troubles()).toEqual([]);
  expect(lines).toEqual([
    ["the clock of this machine is 90.0 s behind the manager's time, which goes on by the database's", -90],
    ["the clock of this machine agrees with the manager's time again", 0],
  ]);
});

it('a manager is ready on a machine whose clock is off, and says so', async () => {
  const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
  const machine = new ManualClock(Date.UTC(2026, 0, 1));
  const { client } = await startManager(database, { clock: machine });
  const team = await client('team_1', 'sandboxes:read');
  expect(await team.get('/readyz')).toMatchObject({ status: 200, data: { clock_offset_seconds: 0 } });
  machine.step(3_600_000);
  const { status, data } = await team.get('/readyz');
  expect(status).toBe(200);
  expect(data).toMatchObject({
    clock_offset_seconds: 3_600,
    degraded: ["the clock of this machine is 3600.0 s ahead of the manager's time"],
  });
});
