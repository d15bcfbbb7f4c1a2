import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../postgres.ts';
import { RedisServer } from '../redis.ts';
import { buildHastyManager } from './hasty-manager.ts';
import { Lane, type LaneRuntime } from './lane.ts';
import { removeTraces, tracesIn } from './machine.ts';
import type { Replica } from './replica.ts';
import { playRound, type RoundReport, type RoundSize } from './round.ts';

const PASSWORD = 'of-this-test';
const PRIORITY = -10;

/** Rounds to be played. */
export interface Rounds extends RoundSize {
  seeds: number[];
  /** Rounds that are played beside each other, each on a database and a data directory of its own. */
  lanes: LaneRuntime[];
  /** How a round is repeated, by its seed. */
  repeat: (seed: number) => string;
}

/** Plays them and prints a line for each; gives the lines of those that did not hold. */
export async function playRounds({ seeds, lanes, repeat, ...size }: Rounds): Promise<string[]> {
  const { program, remove } = await buildHastyManager();
  const calmDown = comeFirst();
  const postgres = await startPostgres({ max_connections: '400' });
  const redis = await RedisServer.start({}, PASSWORD);
  const broken: string[] = [];
  const left = [...seeds];
  let told = 0;
  const play = async (runtime: LaneRuntime) => {
    let lane = await Lane.open({ postgres, redis, program }, runtime);
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      const { line, problems, sandboxes } = await playRound(lane, seed, size).catch((error) =>
        interrupted(seed, error),
      );
      if (sandboxes > 0) told += 1;
      console.log(line);
      if (problems.length === 0) continue;
      const log = join(tmpdir(), `sandboxd-round-${seed}.log`);
      writeFileSync(log, [...lane.replicas.map(loggedBy), ...sandboxesIn(lane)].join('\n'));
      broken.push(`${line}\nwhat replicas and daemons logged: ${log}; repeat it: ${repeat(seed)}`);
      await abandon(lane);
      lane = await Lane.open({ postgres, redis, program }, runtime);
    }
    await lane.close();
  };
  try {
    await Promise.all(lanes.slice(0, seeds.length).map(play));
  } finally {
    await redis.stop();
    await postgres.stop();
    remove();
    calmDown();
  }
  if (told < seeds.length / 2)
    broken.push(`only ${told} of ${seeds.length} rounds had a sandbox: they show nothing`);
  return broken;
}

/**
 * Lets this process, and the servers and replicas that it starts, come before all else on a busy machine, where a lease of
 * a second would end before a step is done. Returns what undoes it.
 */
function comeFirst(): () => void {
  const before = getPriority();
  try {
    setPriority(PRIORITY);
    return () => setPriority(before);
  } catch {
    return () => {};
  }
}

/** A round that could not be played to its end, whose lane is ended as well. */
function interrupted(seed: number, error: Error): RoundReport {
  return { line: `seed ${seed}: ${error.stack}`, problems: [error.message], sandboxes: 0 };
}

/** Ends a lane whose round did not hold, with everything that is left of its sandboxes. */
function loggedBy({ name, refusals, log }: Replica): string {
  return `${name}\n${JSON.stringify([...refusals])}\n${log}`;
}

/** What there is of each sandbox that has a directory: its record, and what its daemon has logged. */
function sandboxesIn({ data_dir }: Lane): string[] {
  const ids = readdirSync(data_dir).filter((name) => name.startsWith('sbx_'));
  return ids.flatMap((id) =>
    ['sandbox.json', 'daemon.log'].map((name) => {
      const file = join(data_dir, id, name);
      return `${id} ${name}\n${existsSync(file) ? readFileSync(file, 'utf8') : 'is not there'}`;
    }),
  );
}

async function abandon(lane: Lane): Promise<void> {
  for (const replica of lane.replicas) await replica.kill();
  removeTraces(lane.data_dir, tracesIn(lane.data_dir, []));
  await lane.close();
}
