import { expect, it } from 'vitest';
import { latestOf, NetworkTotals, NO_TRAFFIC } from '../../../src/manager/usage/network-totals.ts';
import { usageOf } from '../../support/manager/scripted-networks.ts';

async function passed(totals: NetworkTotals): Promise<number[]> {
  const [bytes] = totals.metrics();
  return ((await bytes?.samples()) ?? []).map(({ value }) => value);
}

it('the totals are the growth over all sandboxes, each byte once, also if what was seen could not be stored', async () => {
  const totals = new NetworkTotals();
  expect(await passed(totals)).toEqual([0, 0]);
  totals.add('a', usageOf(1_000, 0), usageOf(1_005, 1));
  totals.add('a', usageOf(1_000, 0), usageOf(1_007, 1));
  totals.add('b', NO_TRAFFIC, usageOf(0, 10));
  expect(await passed(totals)).toEqual([7, 11]);
  // Another manager has stored more meanwhile: it has counted that.
  totals.add('a', usageOf(1_100, 1), usageOf(1_101, 1));
  totals.keepOnly(new Set());
  totals.add('a', usageOf(1_101, 1), usageOf(1_101, 1));
  expect(await passed(totals)).toEqual([8, 11]);
});

it('has a name for each of the five, by direction, with waits in seconds', async () => {
  const totals = new NetworkTotals();
  const waited = { ...NO_TRAFFIC, egress: { ...NO_TRAFFIC.egress, waited_ms: 1_500 } };
  totals.add('a', NO_TRAFFIC, waited);
  expect(totals.metrics().map(({ name, type }) => [name, type])).toEqual([
    ['network_passed_bytes_total', 'counter'],
    ['network_passed_packets_total', 'counter'],
    ['network_dropped_bytes_total', 'counter'],
    ['network_dropped_packets_total', 'counter'],
    ['network_wait_seconds_total', 'counter'],
  ]);
  expect(await totals.metrics().at(-1)?.samples()).toEqual([
    { labels: { direction: 'egress' }, value: 1.5 },
    { labels: { direction: 'ingress' }, value: 0 },
  ]);
});

it('the later of two readings is the larger one, number by number', () => {
  expect(latestOf(usageOf(5, 1), usageOf(3, 2))).toEqual(usageOf(5, 2));
});
