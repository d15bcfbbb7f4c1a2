import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { LoopTurns } from '../../src/base/loop-turns.ts';

it('does the first piece at once, and one of the others in each turn, in their order', async () => {
  const turns = new LoopTurns();
  const done: number[] = [];
  for (let i = 0; i < 4; i++) turns.take(() => done.push(i));
  expect(done).toEqual([0]);
  for (let turn = 1; turn < 4; turn++) {
    await nextTurn();
    expect(done.length).toBeLessThanOrEqual(turn + 1);
  }
  while (done.length < 4) await nextTurn();
  expect(done).toEqual([0, 1, 2, 3]);
});

it('lets who asks for the next turn do nothing in this one, even if it is free', async () => {
  const turns = new LoopTurns();
  const done: string[] = [];
  void turns.next().then(() => done.push('next'));
  void turns.taken().then(() => done.push('taken'));
  await Promise.resolve();
  expect(done).toEqual([]);
  while (done.length < 2) await nextTurn();
  expect(done).toEqual(['next', 'taken']);
});

it('goes on after a piece that throws', async () => {
  const turns = new LoopTurns();
  expect(() =>
    turns.take(() => {
      throw new Error('this one');
    }),
  ).toThrow('this one');
  await turns.taken();
  await turns.next();
});
