import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { DueQueue } from '../../src/watch/due-queue.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('a queue of what is due later', () => {
  it('gives items in their order, each under its last ticket', () => {
    const queue = new DueQueue<{ ticket: number }>(10);
    const [a, b] = [{ ticket: 1 }, { ticket: 2 }];
    queue.put(a, 0);
    queue.put(b, 1);
    a.ticket = 3;
    queue.put(a, 2);
    expect(queue.first()).toMatchObject({ item: b, due_ms: 11 });
    queue.shift();
    expect(queue.first()).toMatchObject({ item: a, due_ms: 12 });
    queue.shift();
    expect(queue.first()).toBeNull();
  });

  it('does not hold on to what was taken while others wait', async () => {
    const queue = new DueQueue<{ ticket: number }>(0);
    const taken = new WeakRef({ ticket: 1 });
    queue.put(taken.deref() as { ticket: number }, 0);
    queue.put({ ticket: 2 }, 0);
    queue.shift();
    // A weak reference keeps its object until the end of the turn that looked at it.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(taken.deref()).toBeUndefined();
    expect(queue.first()).not.toBeNull();
  });
});
