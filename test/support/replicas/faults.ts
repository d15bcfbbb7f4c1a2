import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Moment } from '../cutting-proxy.ts';
import { ManagerProgram } from '../manager-program.ts';
import type { Random } from '../random.ts';
import type { Story } from './actor.ts';
import type { Lane } from './lane.ts';
import { tracesIn } from './machine.ts';
import type { Replica } from './replica.ts';

/**
 * - `kill`: SIGKILL, and a start some time later
 * - `freeze`: SIGSTOP for longer than a lease, and SIGCONT
 * - `step`: its wall clock is set
 * - `drop`: the database ends all connections
 * - `cut`: a replica's connections end at one of its next statements, before or after it is carried out
 * - `restore`: the database is put back to what it was a moment ago
 * - `stranger`: one more manager, with another data directory
 */
export const FAULTS = ['kill', 'freeze', 'step', 'drop', 'cut', 'restore', 'stranger'] as const;
export type FaultKind = (typeof FAULTS)[number];

const SHIFTS_MS = [20_000, 3_600_000, -3_600_000, 86_400_000];
/** Longer than every lease, of an operation and of an endpoint. */
const FREEZE_MS = 1_300;
const REFUSED_WITHIN_MS = 20_000;
const SOON_MS = 30_000;
const LOOK_MS = 20;

export interface Fault {
  kind: FaultKind;
  /** Since the fault before it. */
  after_ms: number;
  /** Which replica. */
  replica: number;
  /** How long it takes. */
  for_ms: number;
  shift_ms: number;
  statement: number;
  moment: Moment;
}

/** Random faults, of which the first is of the given kind; the database is put back at most once. */
export function drawFaults(random: Random, first: FaultKind, kinds: readonly FaultKind[]): Fault[] {
  const faults: Fault[] = [];
  const count = 2 + random.below(2);
  while (faults.length < count) {
    const drawn = faults.length === 0 ? first : random.pick(kinds);
    const is_again = drawn === 'restore' && faults.some(({ kind }) => kind === 'restore');
    faults.push({
      kind: is_again ? 'freeze' : drawn,
      after_ms: random.below(900),
      replica: random.below(2),
      for_ms: random.below(1_200),
      shift_ms: random.pick(SHIFTS_MS),
      statement: 1 + random.below(12),
      moment: random.chance(0.5) ? 'before' : 'after',
    });
  }
  return faults;
}

/** Does to the replicas what was drawn; returns what went wrong with the faults themselves. */
export async function sufferFaults(lane: Lane, story: Story, faults: Fault[]): Promise<string[]> {
  const problems: string[] = [];
  for (const fault of faults) {
    await sleep(fault.after_ms);
    problems.push(...(await suffer(lane, story, fault)));
  }
  return problems;
}

async function suffer(lane: Lane, story: Story, fault: Fault): Promise<string[]> {
  const replica = lane.replicas[fault.replica] as Replica;
  switch (fault.kind) {
    case 'kill':
      await replica.kill();
      await sleep(fault.for_ms);
      await replica.start(lane.database);
      return [];
    case 'freeze':
      replica.freeze();
      await sleep(FREEZE_MS + fault.for_ms);
      replica.thaw();
      return [];
    case 'step':
      replica.stepClock(fault.shift_ms);
      return [];
    case 'drop':
      await lane.dropConnections();
      return [];
    case 'cut':
      replica.cutAt(fault.statement, fault.moment);
      return [];
    case 'restore':
      await putBack(lane, story, fault.for_ms);
      return [];
    case 'stranger':
      return stranger(lane);
  }
}

async function putBack(lane: Lane, story: Story, for_ms: number): Promise<void> {
  // So that there is something to be put back, and something that is not.
  await soon(() => story.sandboxes.length > 0);
  const began_ms = performance.now();
  const copy = await lane.backUp();
  await sleep(for_ms);
  await soon(() => story.sandboxes.some(({ touched_ms }) => touched_ms > began_ms));
  story.is_put_back = true;
  await lane.restore(copy);
  const { directories } = tracesIn(lane.data_dir, []);
  const rows = await lane.query<{ sandbox_id: string }>('select sandbox_id from sandboxes');
  const recorded = new Set(rows.map(({ sandbox_id }) => sandbox_id));
  for (const sandbox of story.sandboxes) {
    if (sandbox.touched_ms < began_ms && !sandbox.has_ttl) continue;
    sandbox.is_put_back = true;
    sandbox.is_forgotten = !directories.has(sandbox.id) && !recorded.has(sandbox.id);
    // Its events were handed over to the database that is no more.
    if (!directories.has(sandbox.id) || sandbox.told === 'gone') sandbox.acknowledged.clear();
  }
}

/** Waits a while for what will probably come. */
async function soon(isThere: () => boolean): Promise<void> {
  const end_ms = performance.now() + SOON_MS;
  while (!isThere() && performance.now() < end_ms) await sleep(LOOK_MS);
}

/** A second data directory must be refused by name, before it does anything. */
async function stranger(lane: Lane): Promise<string[]> {
  const data_dir = join(lane.folder, 'other-data');
  mkdirSync(data_dir, { recursive: true });
  const manager = ManagerProgram.begin([...lane.options, '--data-dir', data_dir], {
    program: lane.program,
  });
  const end_ms = performance.now() + REFUSED_WITHIN_MS;
  while (manager.child.exitCode === null && manager.url === '' && performance.now() < end_ms)
    await sleep(LOOK_MS);
  if (manager.child.exitCode !== null) {
    return manager.log.includes(data_dir)
      ? []
      : [`another data directory is refused without its name: ${manager.log}`];
  }
  // What it does where it is let in is judged as well.
  await sleep(1_000);
  await manager.end('SIGKILL');
  return ['a manager with another data directory was let in'];
}
