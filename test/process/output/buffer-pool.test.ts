import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OUTPUT_CHUNK_BYTES } from '../../../src/contract/defaults.ts';
import { ReadMemory, release, retain, SLAB_BYTES } from '../../../src/process/output/buffer-pool.ts';

test('what is read stays as it is until its last use is released, whatever others read and release meanwhile', () => {
  const step = fc.record({
    stream: fc.nat(2),
    length: fc.integer({ min: 0, max: OUTPUT_CHUNK_BYTES }),
    uses: fc.integer({ min: 1, max: 3 }),
    leaves: fc.boolean(),
    releases: fc.nat(3),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const memories = [new ReadMemory(), new ReadMemory(), new ReadMemory()];
      const held: { bytes: Buffer; data: Buffer }[] = [];
      for (const [i, { stream, length, uses, leaves, releases }] of steps.entries()) {
        const memory = memories[stream] as ReadMemory;
        const bytes = Buffer.alloc(length, i);
        const data = memory.copyOf(bytes);
        for (let use = 0; use < uses; use++) held.push({ bytes, data });
        for (let use = 1; use < uses; use++) retain(data);
        if (leaves) memory.leave();
        for (const each of held) expect(each.bytes.equals(each.data)).toBe(true);
        for (const each of held.splice(0, releases)) release(each.data);
      }
      for (const { data } of held) release(data);
      for (const memory of memories) memory.leave();
    }),
  );
});

test('a slab is used again once all that was read into it is released, and memory of others never', () => {
  const memory = new ReadMemory();
  const [first, second] = [memory.take(10), memory.take(10)];
  expect(second.buffer).toBe(first.buffer);
  memory.leave();
  release(first);
  const meanwhile = memory.take(1);
  expect(meanwhile.buffer).not.toBe(first.buffer);
  memory.leave();
  release(second);
  const other = Buffer.alloc(SLAB_BYTES);
  release(other);
  expect(memory.room().buffer).toBe(first.buffer);
  memory.leave();
  release(meanwhile);
});

test('there is always room for a whole chunk', () => {
  const memory = new ReadMemory();
  for (let i = 0; i < 40; i++) {
    expect(memory.room().length).toBeGreaterThanOrEqual(OUTPUT_CHUNK_BYTES);
    release(memory.take(OUTPUT_CHUNK_BYTES - 1));
  }
  memory.leave();
});
