import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../random.ts';
import { Actor, type Story } from './actor.ts';
import { drawFaults, FAULTS, type Fault, type FaultKind, sufferFaults } from './faults.ts';
import { deliveryProblems, differences, leftovers, underWay, windowProblems } from './judge.ts';
import type { Lane } from './lane.ts';
import { settleOrphans } from './orphans.ts';
import type { Replica } from './replica.ts';

const ACTORS = 2;
/** What is settled at all is settled long before. */
const SETTLED_WITHIN_MS = 40_000;
const LOOK_MS = 150;
const AGAIN_MS = 50;
const AWAY_MAX_MS = 1_500;

/** How a round went: its line, and what was wrong; nothing where all held. */
export interface RoundReport {
  line: string;
  problems: string[];
  /** How many were claimed or copied and acknowledged. */
  sandboxes: number;
}

/** What a round is made of. */
export interface RoundSize {
  /** Changes that each of the two actors asks for. */
  steps: number;
  kinds?: readonly FaultKind[];
}

/**
 * Plays a round: random changes of sandboxes while random faults are suffered. Afterwards, when all is healed and settled,
 * what runs is what is recorded, and what was acknowledged; then all are deleted, and nothing is left but their events and windows.
 */
export async function playRound(
  lane: Lane,
  seed: number,
  { steps, kinds = FAULTS }: RoundSize,
): Promise<RoundReport> {
  const began_ms = performance.now();
  const story: Story = { sandboxes: [], verbs: new Map(), is_put_back: false, orphans: 0, unseen: 0 };
  const random = new Random(seed);
  const faults = drawFaults(random, kinds[seed % kinds.length] as FaultKind, kinds);
  const actors = Array.from(
    { length: ACTORS },
    () => new Actor(lane, new Random(random.below(2 ** 31)), story),
  );
  const away_ms = random.chance(0.4) ? random.below(AWAY_MAX_MS) : 0;
  const is_adopted = random.chance(0.5);
  beAway(lane, away_ms);
  for (const { refusals } of lane.replicas) refusals.clear();
  const [problems] = await Promise.all([
    sufferFaults(lane, story, faults),
    ...actors.map((actor) => actor.act(steps)),
  ]);
  problems.push(...(await judge(lane, story, is_adopted, random)));
  const line = lineOf({ seed, story, faults, lane, problems, duration_ms: performance.now() - began_ms });
  return { line, problems, sandboxes: story.sandboxes.length };
}

/** The consumer refuses everything for a while. */
function beAway({ consumer }: Lane, away_ms: number): void {
  consumer.deliveries.length = 0;
  const back_ms = performance.now() + away_ms;
  consumer.answer = (_, response) => response.writeHead(performance.now() < back_ms ? 503 : 204).end();
}

async function judge(lane: Lane, story: Story, is_adopted: boolean, random: Random): Promise<string[]> {
  const problems = await heal(lane);
  if (story.is_put_back) {
    // What is being made or undone is no orphan.
    problems.push(...(await settled(() => underWay(lane))));
    await settleOrphans(lane, story, is_adopted);
  }
  problems.push(...(await settled(() => differences(lane, story))));
  // The scene is kept as it is: what daemons have logged goes with their sandboxes.
  if (problems.length > 0) return problems;
  const there = await lane.query<{ sandbox_id: string }>(
    'select sandbox_id from sandboxes where deleted_at_ms is null',
  );
  const deleted = new Set(
    [...there, ...story.sandboxes.map(({ id }) => ({ sandbox_id: id }))].map((row) => row.sandbox_id),
  );
  await Promise.all([...deleted].map((id) => deleteForSure(lane, story, id, random.below(2))));
  problems.push(...(await settled(() => leftovers(lane, story))));
  problems.push(...(await settled(async () => deliveryProblems(lane, story, deleted))));
  return [...problems, ...(await windowProblems(lane, story))];
}

/** Ends every fault; names replicas that have not survived. */
async function heal(lane: Lane): Promise<string[]> {
  const problems: string[] = [];
  for (const replica of lane.replicas) {
    replica.callOffCut();
    replica.stepClock(0);
    if (!replica.has_ended) continue;
    problems.push(`a replica has ended by itself: ${replica.log.slice(-600)}`);
    await replica.start(lane.database);
  }
  return problems;
}

/** Repeats a look until it finds nothing; gives what it finds in the end. */
async function settled(look: () => Promise<string[]>): Promise<string[]> {
  const end_ms = performance.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const problems = await look();
    if (problems.length === 0 || performance.now() > end_ms) return problems;
    await sleep(LOOK_MS);
  }
}

async function deleteForSure(lane: Lane, story: Story, id: string, first: number): Promise<void> {
  const sandbox = story.sandboxes.find((each) => each.id === id);
  if (sandbox?.told === 'gone' && !sandbox.is_put_back) return;
  sandbox?.mayStop(performance.now());
  for (let n = first; n < first + SETTLED_WITHIN_MS / AGAIN_MS; n++) {
    const answer = await (lane.replicas[n % 2] as Replica).ask('DELETE', `/sandboxes/${id}`);
    if (answer?.status === 202 || answer?.status === 404) break;
    await sleep(AGAIN_MS);
  }
  sandbox?.stopped('gone');
}

interface Told {
  seed: number;
  story: Story;
  faults: Fault[];
  lane: Lane;
  problems: string[];
  duration_ms: number;
}

function lineOf({ seed, story, faults, lane, problems, duration_ms }: Told): string {
  const verbs = [...story.verbs].map(([verb, { done, asked }]) => `${verb} ${done}/${asked}`).join(', ');
  const events = story.sandboxes.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0);
  const found = story.is_put_back ? `, ${story.orphans} orphans, ${story.unseen} unseen` : '';
  const counts = `${story.sandboxes.length} sandboxes, ${events} events, ${lane.consumer.deliveries.length} deliveries${found}`;
  const suffered = faults.map(({ kind, replica }) => `${kind} ${replica}`).join(', ');
  const outcome = problems.length === 0 ? 'held' : `BROKEN: ${problems.join('; ')}`;
  const refusals = lane.replicas.flatMap((replica) => [...replica.refusals]);
  const refused = refusals.map(([why, count]) => `${count}× ${why}`).join(' ');
  return `seed ${seed}: ${verbs} | ${suffered} | ${refused} | ${counts} | ${Math.round(duration_ms)} ms | ${outcome}`;
}
