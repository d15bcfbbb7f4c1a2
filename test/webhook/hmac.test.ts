import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { HmacKey } from '../../src/webhook/hmac.ts';

const platform = (key: string, text: string) => createHmac('sha256', key).update(text).digest('hex');

describe('an HMAC key', () => {
  it.each([0, 1, 63, 64, 65, 200])('signs as the platform does with a key of %i bytes', (length) => {
    const key = 'k'.repeat(length);
    expect(new HmacKey(Buffer.from(key)).sign('a body')).toBe(platform(key, 'a body'));
  });

  it.each(['', 'ä€😀', 'x'.repeat(5_461), 'x'.repeat(5_462), '€'.repeat(20_000)])(
    'signs texts of any length, one after the other',
    (text) => {
      const key = new HmacKey(Buffer.from('secret'));
      expect(key.sign(text)).toBe(platform('secret', text));
      expect(key.sign('short')).toBe(platform('secret', 'short'));
    },
  );

  it('signs parts, texts and bytes, as their concatenation', () => {
    const key = new HmacKey(Buffer.from('secret'));
    expect(key.sign('ä', Buffer.from('b'), 'c')).toBe(platform('secret', 'äbc'));
  });
});
