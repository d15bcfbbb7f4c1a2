import fc from 'fast-check';
import { expect, test } from 'vitest';
import { incompleteBytes, previewOf } from '../../../src/process/output/preview.ts';

test('a preview is the end of the output, cut between characters', () => {
  expect(previewOf(Buffer.from('short'))).toBe('short');
  const long = Buffer.from(`${'€'.repeat(1_000)}end`).subarray(-2048);
  const preview = previewOf(long);
  expect(preview.endsWith('€end')).toBe(true);
  expect(preview.startsWith('€')).toBe(true);
  expect(Buffer.byteLength(preview)).toBeGreaterThan(2040);
});

test('whatever the bytes, a preview is valid text of at most 2 KiB', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2048 }), (bytes) => {
      const preview = previewOf(Buffer.from(bytes));
      expect(preview.isWellFormed()).toBe(true);
      expect(Buffer.byteLength(preview)).toBeLessThanOrEqual(2048);
    }),
  );
  expect(Buffer.byteLength(previewOf(Buffer.alloc(2048, 0xff)))).toBeLessThanOrEqual(2048);
});

test('cutting the incomplete end off valid text anywhere leaves valid text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(), (text, at) => {
      const bytes = Buffer.from(text);
      const piece = bytes.subarray(0, at % (bytes.length + 1));
      const whole = piece.subarray(0, piece.length - incompleteBytes(piece));
      expect(() => new TextDecoder('utf-8', { fatal: true }).decode(whole)).not.toThrow();
      expect(piece.length - whole.length).toBeLessThanOrEqual(3);
    }),
  );
});
