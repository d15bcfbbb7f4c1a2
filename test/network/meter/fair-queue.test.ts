import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FairQueue } from '../../../src/network/meter/fair-queue.ts';

const packets = fc.array(
  fc.record({ flow: fc.nat(5), length: fc.integer({ min: 20, max: 65_535 }), shifts: fc.nat(2) }),
  { maxLength: 300 },
);

describe('a fair queue', () => {
  it('gives back every packet once, and in the order of its flow', () => {
    fc.assert(
      fc.property(packets, (all) => {
        const queue = new FairQueue();
        const flows = new Map<number, number[]>();
        const out: number[] = [];
        const shift = () => {
          const head = queue.head();
          if (head) out.push(head.id);
          queue.shift();
        };
        for (const [id, { flow, length, shifts }] of all.entries()) {
          queue.push(flow, { id, length });
          flows.set(flow, [...(flows.get(flow) ?? []), id]);
          for (let i = 0; i < shifts; i++) shift();
        }
        while (queue.size > 0) shift();
        expect(queue.head()).toBeNull();
        expect(out.toSorted((a, b) => a - b)).toEqual(all.map((_, id) => id));
        for (const ids of flows.values()) expect(out.filter((id) => ids.includes(id))).toEqual(ids);
      }),
    );
  });

  it('gives busy flows the same number of bytes, whatever the size of their packets', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 60, max: 65_535 }), { minLength: 2, maxLength: 20 }),
        (lengths) => {
          const queue = new FairQueue();
          const bytes = lengths.map(() => 0);
          for (const [flow, length] of lengths.entries()) queue.push(flow, { id: flow, length });
          for (let total = 0; total < lengths.length * 1_000_000; ) {
            const { id, length } = queue.head() as { id: number; length: number };
            queue.shift();
            queue.push(id, { id, length });
            bytes[id] = (bytes[id] as number) + length;
            total += length;
          }
          // One packet and one round apart at most, however long it goes on.
          expect(Math.max(...bytes) - Math.min(...bytes)).toBeLessThanOrEqual(2 * 65_535 + 2 * 2_048);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('serves a flow that had nothing waiting before the busy ones', () => {
    const queue = new FairQueue();
    for (let id = 0; id < 640; id++) queue.push(id % 64, { id, length: 65_535 });
    for (let i = 0; i < 100; i++) queue.shift();
    queue.push(1_000, { id: 1_000, length: 60 });
    expect(queue.head()?.id).toBe(1_000);
  });
});
