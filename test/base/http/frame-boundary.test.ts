import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { closeFrame, FrameBoundary } from '../../../src/base/http/frame-boundary.ts';

/** A frame with a payload of a size; its length takes as many bytes as needed. */
function frame(size: number, is_masked: boolean): Buffer {
  const long = size > 65_535 ? 8 : size > 125 ? 2 : 0;
  const head = Buffer.alloc(2 + long + (is_masked ? 4 : 0));
  head[0] = 0x82;
  head[1] = (is_masked ? 0x80 : 0) | (long === 8 ? 127 : long === 2 ? 126 : size);
  if (long === 8) head.writeBigUInt64BE(BigInt(size), 2);
  if (long === 2) head.writeUInt16BE(size, 2);
  return Buffer.concat([head, Buffer.alloc(size, 0xff)]);
}

describe('the boundary between frames', () => {
  it('is found in any pieces', () => {
    const frames = fc.array(fc.tuple(fc.constantFrom(0, 1, 125, 126, 300, 65_535, 65_536), fc.boolean()), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(frames, fc.array(fc.nat(70_000), { maxLength: 8 }), (sizes, cuts) => {
        const all = sizes.map(([size, is_masked]) => frame(size, is_masked));
        const bytes = Buffer.concat(all);
        const ends = new Set([0]);
        let end = 0;
        for (const { length } of all) {
          end += length;
          ends.add(end);
        }
        const boundary = new FrameBoundary();
        let at = 0;
        for (const cut of [...new Set([...cuts, bytes.length])].sort((a, b) => a - b)) {
          const to = Math.min(cut, bytes.length);
          boundary.take(bytes.subarray(at, to));
          at = to;
          expect(boundary.is_between).toBe(ends.has(at));
        }
      }),
    );
  });
});

it('a closing frame has its code and reason', () => {
  const bytes = closeFrame(1008, 'why');
  expect([...bytes]).toEqual([0x88, 5, 0x03, 0xf0, ...Buffer.from('why')]);
});
