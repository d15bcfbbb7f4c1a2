import { Script } from 'node:vm';
import { expect, it } from 'vitest';
import { collectGarbage } from '../../../src/base/engine/garbage.ts';

it('collects what nothing refers to any more', async () => {
  const gone = new WeakRef({});
  await new Promise(setImmediate);
  collectGarbage();
  expect(gone.deref()).toBeUndefined();
});

it('leaves the engine as it was: it accepts what was compiled before', () => {
  const source = 'function twice(value) { return 2 * value; } twice(2)';
  const cachedData = new Script(source).createCachedData();
  collectGarbage();
  expect(new Script(source, { cachedData }).cachedDataRejected).toBe(false);
});
