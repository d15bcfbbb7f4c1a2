import { join } from 'node:path';
import type { RawBuilder } from 'kysely';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/base/clock.ts';
import type { Database } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { timedBy } from '../../support/manager/manual-time.ts';
import { opened } from '../../support/manager/outbox.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const START_MS = Date.UTC(2026, 0, 1);

/** A database that a test gives a time of its own, as PostgreSQL has one; null: as SQLite, none. */
async function databaseWith(server: ManualClock | null): Promise<Database> {
  const database = await opened(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  return server ? timedBy({ ...database, time: {} as Database['time'] }, server) : database;
}

/** Time passes for all of them. */
async function pass(by_ms: number, ...clocks: ManualClock[]): Promise<void> {
  for (const clock of clocks) await clock.advance(by_ms);
}

describe('the time of a database with a clock of its own', () => {
  it('is the same for replicas whose clocks are ahead, behind, and stepped', async () => {
    const server = new ManualClock(START_MS);
    const database = await databaseWith(server);
    const machines = [20 * SECOND_MS, HOUR_MS, -HOUR_MS].map((off_ms) => new ManualClock(START_MS + off_ms));
    const clocks = await Promise.all(machines.map((machine) => DatabaseClock.open(database, machine)));
    await pass(MINUTE_MS, server, ...machines);
    machines[0]?.step(-3 * HOUR_MS);
    for (const clock of clocks) expect(clock.wallMs()).toBe(START_MS + MINUTE_MS);
    for (const clock of clocks) await clock.measure();
    for (const clock of clocks) expect(clock.wallMs()).toBe(START_MS + MINUTE_MS);
    expect(clocks.map(({ machine_ahead_ms }) => machine_ahead_ms)).toEqual([
      20 * SECOND_MS - 3 * HOUR_MS,
      HOUR_MS,
      -HOUR_MS,
    ]);
  });

  it('follows a clock that is set forward, and one that goes back by running slower', async () => {
    const [server, machine] = [new ManualClock(START_MS), new ManualClock(START_MS)];
    const clock = await DatabaseClock.open(await databaseWith(server), machine);
    server.step(HOUR_MS);
    await clock.measure();
    expect(clock.wallMs()).toBe(START_MS + HOUR_MS);
    server.step(-10 * SECOND_MS);
    await clock.measure();
    expect(clock.wallMs()).toBe(START_MS + HOUR_MS);
    expect(clock.ahead_ms).toBe(10 * SECOND_MS);
    await pass(10 * SECOND_MS, server, machine);
    await clock.measure();
    expect(clock.wallMs()).toBe(START_MS + HOUR_MS + 5 * SECOND_MS);
    await pass(10 * SECOND_MS, server, machine);
    expect(clock.wallMs()).toBe(server.wallMs());
    await pass(MINUTE_MS, server, machine);
    expect(clock.wallMs()).toBe(server.wallMs());
    expect(clock.ahead_ms).toBe(0);
  });

  it('is not moved by a slow answer that agrees with what a fast one has said', async () => {
    const [server, machine] = [new ManualClock(START_MS), new ManualClock(START_MS)];
    const database = await databaseWith(server);
    let trip_ms = 0;
    // Its answer is as old as it took to come back.
    const answer = {
      toOperationNode() {
        const node = (database.time as RawBuilder<number>).toOperationNode();
        for (const each of [server, machine]) each.freeze(trip_ms);
        return node;
      },
    };
    const clock = await DatabaseClock.open({ ...database, time: answer as RawBuilder<number> }, machine);
    expect(clock.wallMs()).toBe(server.wallMs());
    trip_ms = 3 * SECOND_MS;
    await clock.measure();
    expect(clock.wallMs()).toBe(server.wallMs());
  });

  it('catches up at once after a pause in which not even the boot clock ran', async () => {
    const [server, machine] = [new ManualClock(START_MS), new ManualClock(START_MS)];
    const clock = await DatabaseClock.open(await databaseWith(server), machine);
    await server.advance(HOUR_MS);
    await clock.measure();
    expect(clock.wallMs()).toBe(START_MS + HOUR_MS);
  });

  it('counts time in which the machine was suspended, before it is measured again', async () => {
    const machine = new ManualClock(START_MS);
    let slept_ms = 0;
    const suspended: Clock = {
      wallMs: () => machine.wallMs() + slept_ms,
      monotonicMs: () => machine.monotonicMs(),
      after: (delay_ms, run) => machine.after(delay_ms, run),
      boot: () => ({ ...machine.boot(), ms: machine.boot().ms + slept_ms }),
    };
    const clock = await DatabaseClock.open(await databaseWith(new ManualClock(START_MS)), suspended);
    slept_ms = HOUR_MS;
    expect(clock.wallMs()).toBe(START_MS + HOUR_MS);
  });
});

describe('the time that is kept in a database without a clock', () => {
  it('is not changed by a step of the wall clock, towards which it goes by 500 ppm', async () => {
    const machine = new ManualClock(START_MS);
    const clock = await DatabaseClock.open(await databaseWith(null), machine);
    await clock.measure();
    for (const step_ms of [HOUR_MS, -2 * HOUR_MS]) {
      const before_ms = clock.wallMs();
      machine.step(step_ms);
      expect(clock.wallMs()).toBe(before_ms);
      await clock.measure();
      expect(clock.wallMs()).toBe(before_ms);
      await machine.advance(1_000 * SECOND_MS);
      expect(clock.wallMs()).toBe(before_ms + 1_000 * SECOND_MS + Math.sign(step_ms) * 500);
    }
  });

  it('reaches the wall clock and stays with it', async () => {
    const machine = new ManualClock(START_MS);
    const clock = await DatabaseClock.open(await databaseWith(null), machine);
    for (const step_ms of [200, -200]) {
      machine.step(step_ms);
      await clock.measure();
      await machine.advance(HOUR_MS);
      expect(clock.wallMs()).toBe(machine.wallMs());
    }
    expect(clock.machine_ahead_ms).toBe(0);
  });

  it('goes on over a restart by the boot clock, whatever the wall clock says', async () => {
    const database = await databaseWith(null);
    const machine = new ManualClock(START_MS);
    const first = await DatabaseClock.open(database, machine);
    await first.measure();
    await machine.advance(HOUR_MS);
    machine.step(-24 * HOUR_MS);
    expect((await DatabaseClock.open(database, machine)).wallMs()).toBe(START_MS + HOUR_MS);
    expect(first.wallMs()).toBe(START_MS + HOUR_MS);
  });

  it('is the wall clock after a reboot, and never before what it was', async () => {
    const database = await databaseWith(null);
    const first = await DatabaseClock.open(database, new ManualClock(START_MS));
    await first.measure();
    const later = await DatabaseClock.open(database, new ManualClock(START_MS + 10 * HOUR_MS));
    expect(later.wallMs()).toBe(START_MS + 10 * HOUR_MS);
    // A minute may have passed since it was kept.
    const behind = await DatabaseClock.open(database, new ManualClock(START_MS - HOUR_MS));
    expect(behind.wallMs()).toBe(START_MS + MINUTE_MS);
    expect(behind.machine_ahead_ms).toBe(-HOUR_MS - MINUTE_MS);
  });

  it('is one for two managers of a file', async () => {
    const database = await databaseWith(null);
    const boot = { id: 'one', ms: HOUR_MS };
    const [a, b] = [new ManualClock(START_MS, boot), new ManualClock(START_MS, boot)] as const;
    const first = await DatabaseClock.open(database, a);
    await first.measure();
    b.step(HOUR_MS);
    const second = await DatabaseClock.open(database, b);
    await second.measure();
    await pass(10 * MINUTE_MS, a, b);
    for (const clock of [first, second, first]) await clock.measure();
    expect(Math.abs(first.wallMs() - second.wallMs())).toBeLessThan(500);
  });
});
