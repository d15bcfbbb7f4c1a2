import { describe, expect, it } from 'vitest';
import { idempotencyKeyOf } from '../../../src/base/http/idempotency-key.ts';

describe('the idempotency key of a request', () => {
  it.each(['a', '!~', 'x'.repeat(128)])('may be %j', (key) => {
    expect(idempotencyKeyOf(key)).toBe(key);
  });

  it('may be missing', () => {
    expect(idempotencyKeyOf(undefined)).toBeUndefined();
  });

  it.each(['', 'two words', 'é', 'x'.repeat(129), ['a', 'b']].map((key) => [key]))('may not be %j', (key) => {
    expect(() => idempotencyKeyOf(key)).toThrow('Idempotency-Key: must be 1 to 128 visible ASCII characters');
  });
});
