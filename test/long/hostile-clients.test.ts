import { describe, it } from 'vitest';
import { expectToHold } from '../support/hostile/property.ts';
import { longSized, seeded } from './support/size.ts';

describe('64 hostile clients, each doing only what is allowed', () => {
  const duration_ms = longSized(60_000);
  const seed = seeded('hostile clients').below(2 ** 31);

  it('grow nothing beyond its bound and lose nothing, with a receiver that is well', async () => {
    await expectToHold({ clients: 64, duration_ms, seed, badly: 0, only: process.env.HOSTILE_ONLY });
  });

  it('grow nothing beyond its bound and lose nothing, with a receiver that is not', async () => {
    await expectToHold({ clients: 64, duration_ms, seed, badly: 0.2, only: process.env.HOSTILE_ONLY });
  });
});
