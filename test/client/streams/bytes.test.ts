import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OutputPosition, toBase64 } from '../../../src/client/streams/bytes.ts';

const WRITTEN = Uint8Array.from({ length: 400 }, (_, i) => (i * 37) % 256);

it('pieces that overlap give each byte once, and what lies between others is said to be gone', () => {
  const piece = fc.record({ offset: fc.nat(399), length: fc.nat(80) });
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1 }), (pieces) => {
      const position = new OutputPosition();
      let end: number | null = null;
      for (const { offset, length } of pieces) {
        const sent = WRITTEN.subarray(offset, offset + length);
        for (const event of position.take({
          stream: 'stdout',
          offset,
          data: toBase64(sent),
          encoding: 'base64',
        })) {
          if (event.type === 'gone') {
            expect(end).toBeLessThan(event.offset);
            end = event.offset;
          } else {
            // Nothing is given twice, and nothing is left out without a word.
            if (end !== null) expect(event.offset).toBe(end);
            expect(event.bytes).toEqual(WRITTEN.slice(event.offset, event.offset + event.bytes.length));
            end = event.offset + event.bytes.length;
          }
        }
        end ??= offset;
      }
    }),
  );
});

it('what is no piece of output is refused', () => {
  for (const piece of [
    {},
    { stream: 'stdin', offset: 0, data: '' },
    { stream: 'stdout', offset: 0.5, data: '' },
  ]) {
    expect(() => [...new OutputPosition().take(piece)]).toThrow('invalid frame');
  }
  const damaged = { stream: 'stdout', offset: 0, data: '%', encoding: 'base64' };
  expect(() => [...new OutputPosition().take(damaged)]).toThrow('invalid frame');
});
