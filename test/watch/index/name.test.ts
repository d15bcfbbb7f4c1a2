import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bytesOf, nameOf, shownPath } from '../../../src/watch/index/name.ts';

const name = fc
  .uint8Array({ minLength: 1, maxLength: 20 })
  .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0 || byte === 0x2f ? 1 : byte))));

describe('names', () => {
  it('keep every byte, in paths too', () => {
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), (names) => {
        const path = names.map((bytes) => `/${nameOf(bytes)}`).join('');
        expect(bytesOf(path)).toEqual(Buffer.concat(names.flatMap((bytes) => [Buffer.from('/'), bytes])));
      }),
    );
  });

  it('that are UTF-8 are shown as they are, whatever is in them', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (text) => {
        expect(shownPath(nameOf(Buffer.from(text)))).toEqual({ text, base64: null });
      }),
    );
  });

  it('that are not UTF-8 are shown with U+FFFD and their bytes', () => {
    const bytes = Buffer.from([0x62, 0xff, 0xc3, 0xa9]);
    expect(shownPath(nameOf(bytes))).toEqual({ text: 'b\ufffd\u00e9', base64: bytes.toString('base64') });
  });
});
