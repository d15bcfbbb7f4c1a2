import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { DueQueue } from '../../src/watch/due-queue.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('a queue of what is due later', () => {
  it('gives items in their order, each under its last generation', () => {
    const queue = new DueQueue<{ generation: number }>(10);
    const [a, b] = [{ generation: 1 }, { generation: 2 }];
    queue.put(a, 0);
    queue.put(b, 1);
    a.generation = 3;
    queue.put(a, 2);
    expect(queue.first()).toMatchObject({ item: b, due_ms: 11 });
    queue.shift();
    expect(queue.first()).toMatchObject({ item: a, due_ms: 12 });
    queue.shift();
    expect(queue.first()).toBeNull();
  });

  it('does not keep a reference to what was taken while others wait', async () => {
    const queue = new DueQueue<{ generation: number }>(0);
    const taken = new WeakRef({ generation: 1 });
    queue.put(taken.deref() as { generation: number }, 0);
    queue.put({ generation: 2 }, 0);
    queue.shift();
    // A weak reference keeps its object until the end of the turn that looked at it.
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(taken.deref()).toBeUndefined();
    expect(queue.first()).not.toBeNull();
  });
});
