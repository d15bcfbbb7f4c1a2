/** The size of what is published, in bytes. */
export const PAYLOAD_BYTES = 256;
const NUMBER_DIGITS = 12;

const before = '{"n":"';
const after = '","text":"';
const end = '"}';
const text = 'x'.repeat(PAYLOAD_BYTES - before.length - NUMBER_DIGITS - after.length - end.length);

/** The payload that carries `n`, always of the same size. */
export function payloadOf(n: number): string {
  return before + String(n).padStart(NUMBER_DIGITS, '0') + after + text + end;
}
