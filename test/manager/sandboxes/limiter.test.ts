import { describe, expect, it, vi } from 'vitest';
import { Limiter } from '../../../src/manager/sandboxes/limiter.ts';

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
      await vi.waitFor(() => expect(ends.length).toBeGreaterThan(n));
      expect(begun.length - n).toBeLessThanOrEqual(2);
      ends[n]?.();
    }
    await Promise.all(works);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });
});
