import { invalidField } from '../../contract/errors.ts';

const KEY = /^[\x21-\x7e]{1,128}$/;

/**
 * The value of the header `Idempotency-Key`; undefined if it is missing. Throws `invalid_request`.
 * Source: contract sections 4 and 7.
 */
export function idempotencyKeyOf(value: string | string[] | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string' || !KEY.test(value)) {
    throw invalidField('Idempotency-Key', 'must be 1 to 128 visible ASCII characters');
  }
  return value;
}
