import { expect, it } from 'vitest';
import { postgresPrograms } from '../support/postgres.ts';
import { HAS_REDIS } from '../support/redis.ts';
import { playRounds } from '../support/replicas/rounds.ts';
import { missing } from './support/tools.ts';

const ROUNDS = 25;

const is_missing = missing(['root', 'loop device', 'memory control group']) !== null;
const seed = process.env.REPLICAS_SEED;

/** Nothing may be tried again until it holds. */
it.skipIf(is_missing || postgresPrograms() === null || !HAS_REDIS)(
  'two replicas in random faults at random steps: what runs is what is recorded, and what was acknowledged',
  { retry: 0, timeout: 600_000 },
  async () => {
    const seeds =
      seed === undefined ? Array.from({ length: ROUNDS }, (_, i) => i + 1) : seed.split(',').map(Number);
    const broken = await playRounds({
      seeds,
      lanes: ['local', 'local-unsafe', 'local-unsafe'],
      steps: 2,
      repeat: (n) => `REPLICAS_SEED=${n} vitest run --config .vitest.ts test/faults/replicas.test.ts`,
    });
    expect(broken).toEqual([]);
  },
);
