import { expect, onTestFinished } from 'vitest';
import { inParallel } from '../../../src/base/in-parallel.ts';
import { Program } from '../../bench/support/program.ts';
import { startConsumer } from '../consumer.ts';
import { eventually } from '../eventually.ts';
import { OUTSIDE } from '../network/topology.ts';
import { scratchFolder } from '../scratch.ts';
import { dealt } from './behaviours.ts';
import type { HostileCallVerbs } from './calls.ts';
import { HonestTeam } from './honest.ts';
import { type Attempted, type HostileSandbox, NeighbourNode } from './node.ts';
import { nodeTables } from './tables.ts';

const HOSTILE_CONFIG = { resources: { memory: '128Mi', cpu: 0.05, disk: '128Mi' } };
const HONEST_CONFIG = { resources: { memory: '256Mi', cpu: 0.5, disk: '128Mi' } };
/** What nothing ever refuses has been tried by then. */
const TAKEN_ENOUGH = 100;
/** Claims under way: as many as a machine has cores for. */
const AT_ONCE = 4;
const FULL_WITHIN_MS = 120_000;

interface Settings {
  sandboxes: number;
  seed: number;
  /** How often the other team does all it does. */
  lives: number;
}

/**
 * Hostile sandboxes of one team, each taking what it may until it is refused, with hostile calls of their owner, beside
 * another team: asserts that nothing of that is refused, and that every table of the node keeps its reserve.
 */
export async function expectNeighboursToBeServed({ sandboxes, seed, lives }: Settings): Promise<void> {
  const node = await NeighbourNode.start(scratchFolder(), onTestFinished);
  const consumer = await startConsumer(node.here);
  const hostile = await node.client('team_hostile', onTestFinished);
  const honest = new HonestTeam(await node.client('team_honest', onTestFinished), consumer, HONEST_CONFIG);
  const webhook = { url: consumer.url.replace(/\d+\/hook$/, '9/nobody') };
  const held = await honest.claim();
  const attacking: HostileSandbox[] = [];
  await inParallel(dealt(sandboxes, seed), AT_ONCE, async (behaviours) => {
    attacking.push(await node.armed(hostile, { ...HOSTILE_CONFIG, webhook }, behaviours));
  });
  await inParallel(attacking, AT_ONCE, (sandbox) => sandbox.begin());
  const calls = await Program.start<HostileCallVerbs>(new URL('./calls.ts', import.meta.url));
  onTestFinished(() => calls.stop());
  const sandbox_ids = attacking.map(({ id }) => id);
  await calls.ask('begin', { url: hostile.url, token: hostile.token, sandbox_ids, seed });
  await eventually(() => expect(untried(attacking)).toEqual([]), { timeout: FULL_WITHIN_MS, interval: 50 });
  for (let life = 0; life < lives; life++) await honest.live(held, OUTSIDE.ipv4);
  const tables = nodeTables(node);
  console.log(
    `seed ${seed}: ${told(attacking)}; answers ${JSON.stringify(await calls.ask('counts', null as never))}`,
  );
  console.log(tables.map(({ name, taken, most }) => `${name} ${taken} of ${most}`).join(', '));
  expect.soft(honest.refused).toEqual([]);
  const full = tables.filter(({ taken, most, reserve }) => taken > most * (1 - reserve));
  expect.soft(full).toEqual([]);
}

/** Behaviours that no sandbox has yet tried to its bound. */
function untried(attacking: HostileSandbox[]): string[] {
  const all = attacking.flatMap((sandbox) => sandbox.attempted());
  const names = new Set(all.map(({ behaviour }) => behaviour));
  // What takes all memory is killed.
  const isTried = ({ taken, refused, started }: Attempted) =>
    refused > 0 || started > 1 || taken >= TAKEN_ENOUGH;
  return [...names].filter((name) => !all.some((each) => each.behaviour === name && isTried(each)));
}

function told(attacking: HostileSandbox[]): string {
  const sums = new Map<string, [number, number, number]>();
  for (const { behaviour, taken, refused, started } of attacking.flatMap((each) => each.attempted())) {
    const sum = sums.get(behaviour) ?? [0, 0, 0];
    sums.set(behaviour, [sum[0] + taken, sum[1] + refused, sum[2] + started]);
  }
  return [...sums].map(([name, sum]) => `${name} ${sum.join('/')}`).join(', ');
}
