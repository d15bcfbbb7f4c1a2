import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { Metrics } from '../../src/daemon/metrics.ts';
import { OutboxHealth } from '../../src/daemon/outbox-health.ts';
import type { Mended } from '../../src/outbox/sqlite/messages.ts';
import type { Adoption } from '../../src/outbox/store.ts';
import { ManualClock } from '../support/manual-clock.ts';

const INTACT: Adoption = {
  was_ready: false,
  missing_records: 0,
  lost_records: 0,
  set_aside: null,
  foreign_records: 0,
  foreign_pending: 0,
};

/** The health of an outbox, with everything that it tells and does. */
function outboxHealth() {
  const clock = new ManualClock();
  const metrics = new Metrics();
  const output = new PassThrough();
  const counted = { probes: 0 };
  const health = new OutboxHealth(createLog('info', output), metrics, clock, () => {
    counted.probes += 1;
  });
  /** The log lines since the last call, as level and message. */
  const told = (): string[] => {
    const lines = String(output.read() ?? '').split('\n');
    return lines.filter(Boolean).map((line) => {
      const { level, msg } = JSON.parse(line);
      return `${level}: ${msg}`;
    });
  };
  const lost = async () => /records_lost_total (\d+)/.exec(await metrics.text([]))?.[1];
  const forged = async () => /not_authentic_total (\d+)/.exec(await metrics.text([]))?.[1];
  return { clock, health, counted, told, lost, forged };
}

it('tells once that records make room', () => {
  const { health, told } = outboxHealth();
  health.reportDropped();
  health.reportDropped();
  expect(told()).toEqual([expect.stringMatching(/^warn: .*failed and expired records make room/)]);
});

describe('trouble of the outbox', () => {
  it('is logged once when it begins and once when it ends', () => {
    const { health, told } = outboxHealth();
    health.observe(null);
    expect([health.trouble, told()]).toEqual([null, []]);
    health.observe('no space left');
    health.observe('no space left');
    expect(health.trouble).toBe('no space left');
    expect(told()).toEqual(['error: the outbox cannot be written']);
    health.observe(null);
    expect([health.trouble, told()]).toEqual([null, ['info: the outbox can be written again']]);
  });

  it('is probed each second until it ends, although nobody writes', async () => {
    const { health, clock, counted } = outboxHealth();
    await clock.advance(10_000);
    expect(counted.probes).toBe(0);
    health.observe('no space left');
    await clock.advance(3_000);
    expect(counted.probes).toBe(3);
    health.observe(null);
    await clock.advance(10_000);
    expect([counted.probes, clock.timers]).toEqual([3, 0]);
  });
});

describe('what was found when the outbox was opened', () => {
  it('is no news if it is intact', async () => {
    const { health, told, lost } = outboxHealth();
    health.reportAdoption(INTACT);
    expect([told(), health.damages, await lost()]).toEqual([[], [], '0']);
  });

  it('is told with its losses if it was damaged', async () => {
    const { health, told, lost } = outboxHealth();
    health.reportAdoption({ ...INTACT, set_aside: '/state/damaged', missing_records: 5, lost_records: 3 });
    expect(told()).toEqual(['error: the outbox was damaged']);
    expect(health.damages).toEqual([
      'a damaged outbox was set aside at /state/damaged',
      '5 acknowledged records are missing, 2 of which had been delivered',
    ]);
    expect(await lost()).toBe('3');
  });

  it("is a warning if another sandbox's records were still pending", () => {
    const { health, told } = outboxHealth();
    health.reportAdoption({ ...INTACT, foreign_records: 2 });
    expect(told()).toEqual(['info: the outbox holds records of another sandbox: they will not be sent']);
    health.reportAdoption({ ...INTACT, foreign_records: 2, foreign_pending: 1 });
    expect(told()).toEqual([
      'warn: the outbox holds records of another sandbox, some undelivered: they will not be sent',
    ]);
    expect(health.damages).toEqual([]);
  });
});

describe('a repair while the daemon runs', () => {
  it.each<[Mended, string[], { lost: string; forged: string }]>([
    [
      { how: 'restored', lost_records: 0, set_aside: null },
      ["the outbox's files were removed or replaced, and have been rewritten"],
      { lost: '0', forged: '0' },
    ],
    [
      { how: 'replaced', lost_records: 2, set_aside: '/state/damaged' },
      ['a damaged outbox was set aside at /state/damaged', '2 acknowledged records are missing'],
      { lost: '2', forged: '0' },
    ],
    [
      { how: 'replaced', lost_records: 0, set_aside: '/state/damaged' },
      ['a damaged outbox was set aside at /state/damaged'],
      { lost: '0', forged: '0' },
    ],
    [
      { how: 'failed', lost_records: 1, set_aside: null },
      ['1 acknowledged record is damaged on disk and will not be sent'],
      { lost: '1', forged: '0' },
    ],
    [
      { how: 'forged', lost_records: 4, set_aside: null },
      ['4 records are not authentic and will not be sent'],
      { lost: '0', forged: '4' },
    ],
  ])('%j is told and counted', async (mended, damages, counts) => {
    const { health, told, lost, forged } = outboxHealth();
    health.reportRepair(mended);
    expect(health.damages).toEqual(damages);
    expect(told()).toHaveLength(1);
    expect({ lost: await lost(), forged: await forged() }).toEqual(counts);
  });
});
