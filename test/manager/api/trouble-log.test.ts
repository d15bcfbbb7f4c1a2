import { pino } from 'pino';
import { expect, it } from 'vitest';
import { TroubleLog } from '../../../src/manager/api/trouble-log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A log of trouble, and the lines that it has written. */
function troubleLog() {
  const lines: { request_id: string; omitted?: number }[] = [];
  const clock = new ManualClock();
  const log = pino({ base: undefined }, { write: (text: string) => void lines.push(JSON.parse(text)) });
  return { trouble: new TroubleLog(log, clock), lines, clock };
}

it("a team's refused requests have 20 lines at once and one a second, which tells how many had none", async () => {
  const { trouble, lines, clock } = troubleLog();
  for (let i = 0; i < 500; i++) trouble.refused('team_1', { request_id: `${i}`, reason: 'no answer' });
  expect(lines).toHaveLength(20);
  await clock.advance(2_500);
  for (let i = 500; i < 510; i++) trouble.refused('team_1', { request_id: `${i}`, reason: 'no answer' });
  expect(lines.slice(20).map(({ request_id, omitted }) => [request_id, omitted])).toEqual([
    ['500', 480],
    ['501', undefined],
  ]);
  await clock.advance(3_600_000);
  for (let i = 510; i < 600; i++) trouble.refused('team_1', { request_id: `${i}`, reason: 'no answer' });
  expect(lines.slice(22)).toHaveLength(20);
  expect(lines[22]).toMatchObject({ request_id: '510', omitted: 8 });
});

it("the lines of another team's refused requests, and of those without a team, are their own", () => {
  const { trouble, lines } = troubleLog();
  for (let i = 0; i < 500; i++) trouble.refused('team_1', { request_id: `${i}`, reason: 'no answer' });
  for (const team_id of ['team_2', ''])
    trouble.refused(team_id, { request_id: team_id, reason: 'no answer' });
  expect(lines.slice(20).map(({ request_id }) => request_id)).toEqual(['team_2', '']);
});
