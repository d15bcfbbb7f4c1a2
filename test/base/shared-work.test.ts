import { expect, it } from 'vitest';
import { SharedWork } from '../../src/base/shared-work.ts';

it('who asks while work is under way shares the next one, which begins once the present one has ended', async () => {
  const shared = new SharedWork<number>();
  const begun: PromiseWithResolvers<number>[] = [];
  const work = () => {
    const piece = Promise.withResolvers<number>();
    begun.push(piece);
    return piece.promise;
  };
  expect(shared.present).toBeNull();
  const first = shared.run(work);
  expect(shared.present).toBe(first);
  const second = shared.run(work);
  expect(shared.run(work)).toBe(second);
  expect(begun).toHaveLength(1);
  begun[0]?.reject(new Error('failed'));
  await expect(first).rejects.toThrow('failed');
  expect(begun).toHaveLength(2);
  const third = shared.run(work);
  begun[1]?.resolve(2);
  expect(await second).toBe(2);
  begun[2]?.resolve(3);
  expect(await third).toBe(3);
  expect(shared.present).toBeNull();
});
