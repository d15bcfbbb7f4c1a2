import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPostgres } from '../postgres.ts';
import { RedisServer } from '../redis.ts';
import { buildHastyManager } from './hasty-manager.ts';
import { Lane } from './lane.ts';
import { removeTraces, tracesIn } from './machine.ts';
import { playRound, type RoundSize } from './round.ts';

const PASSWORD = 'of-this-test';

/** Rounds to be played. */
export interface Rounds extends RoundSize {
  seeds: number[];
  /** Rounds that are played beside each other, each on a database and a data directory of its own. */
  lanes: number;
  network: string;
  /** How a round is repeated, by its seed. */
  repeat: (seed: number) => string;
}

/** Plays them and prints a line for each; gives the lines of those that did not hold. */
export async function playRounds({ seeds, lanes, network, repeat, ...size }: Rounds): Promise<string[]> {
  const { program, remove } = await buildHastyManager();
  const postgres = await startPostgres({ max_connections: '400' });
  const redis = await RedisServer.start({}, PASSWORD);
  const broken: string[] = [];
  const left = [...seeds];
  const play = async () => {
    let lane = await Lane.open({ postgres, redis, program }, network);
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      const { line, problems } = await playRound(lane, seed, size);
      console.log(line);
      if (problems.length === 0) continue;
      const log = join(tmpdir(), `sandboxd-round-${seed}.log`);
      writeFileSync(
        log,
        lane.replicas
          .map((replica) => `${replica.name}\n${JSON.stringify([...replica.refusals])}\n${replica.log}`)
          .join('\n'),
      );
      broken.push(`${line}\nwhat the replicas logged: ${log}; repeat it: ${repeat(seed)}`);
      await abandon(lane);
      lane = await Lane.open({ postgres, redis, program }, network);
    }
    await lane.close();
  };
  try {
    await Promise.all(Array.from({ length: lanes }, play));
  } finally {
    await redis.stop();
    await postgres.stop();
    remove();
  }
  return broken;
}

/** Ends a lane whose round did not hold, with everything that is left of its sandboxes. */
async function abandon(lane: Lane): Promise<void> {
  for (const replica of lane.replicas) await replica.kill();
  removeTraces(lane.data_dir, tracesIn(lane.data_dir, []));
  await lane.close();
}
