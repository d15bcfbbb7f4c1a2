import { describe, expect, it } from 'vitest';
import { Limiter } from '../../../src/manager/sandboxes/limiter.ts';
import { eventually } from '../../support/eventually.ts';

describe('a limiter', () => {
  it('leaves slots to other groups, however long one group takes', async () => {
    const limiter = new Limiter(4, 2);
    const ran: string[] = [];
    const never = () => new Promise<void>(() => {});
    for (let n = 0; n < 10; n++) void limiter.run('hostile', never);
    for (let n = 0; n < 3; n++) {
      await limiter.run('other', async () => {
        ran.push(`other ${n}`);
      });
    }
    expect(ran).toEqual(['other 0', 'other 1', 'other 2']);
  });

  it('starts waiting tasks in order, no more at once than there are slots', async () => {
    const limiter = new Limiter(2, 2);
    const ends: (() => void)[] = [];
    const begun: number[] = [];
    const works = Array.from({ length: 5 }, (_, n) =>
      limiter.run('team', () => {
        begun.push(n);
        return new Promise<void>((resolve) => ends.push(resolve));
      }),
    );
    for (let n = 0; n < 5; n++) {
      await eventually(() => expect(ends.length).toBeGreaterThan(n));
      expect(begun.length - n).toBeLessThanOrEqual(2);
      ends[n]?.();
    }
    await Promise.all(works);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });

  it('gives slots to the groups in turn, so that a group with many tasks does not go first', async () => {
    const limiter = new Limiter(2, 2);
    const ends: (() => void)[] = [];
    const begun: string[] = [];
    const run = (name: string, group: string) =>
      limiter.run(group, () => {
        begun.push(name);
        return new Promise<void>((resolve) => ends.push(resolve));
      });
    const works = [...['a1', 'a2', 'a3', 'a4'].map((name) => run(name, 'a')), run('b1', 'b')];
    for (let n = 0; n < works.length; n++) {
      await eventually(() => expect(ends.length).toBeGreaterThan(n));
      ends[n]?.();
    }
    await Promise.all(works);
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'a4']);
  });

  it('frees the slot of a task that fails, and tells its error', async () => {
    const limiter = new Limiter(1, 1);
    const failing = limiter.run('a', async () => {
      throw new Error('no');
    });
    const next = limiter.run('a', async () => 'done');
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('done');
  });
});
