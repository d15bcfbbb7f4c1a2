import { invalidField } from '../../contract/errors.ts';

/** Query parameters, checked: every function throws `invalid_request` with the parameter named. */
export type Query = Record<string, string | undefined>;

/** The query's parameters, each a single text; others than `names` are refused. */
export function queryOf(query: unknown, names: readonly string[]): Query {
  for (const [name, value] of Object.entries(query as object)) {
    if (!names.includes(name)) throw invalidField(name, 'is not known');
    if (typeof value !== 'string') throw invalidField(name, 'must be given once');
  }
  return query as Query;
}

export function oneOf<Value extends string>(
  value: string | undefined,
  field: string,
  values: readonly Value[],
): Value | undefined {
  if (value === undefined) return undefined;
  const found = values.find((each) => each === value);
  if (!found) throw invalidField(field, `must be one of ${values.join(', ')}`);
  return found;
}

/** A number of up to 15 digits, so that it is exact. */
export function wholeNumber(
  value: string | undefined,
  field: string,
  least = 1,
  most = Number.MAX_SAFE_INTEGER,
): number | undefined {
  if (value === undefined) return undefined;
  const number = /^(0|[1-9]\d{0,14})$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  throw invalidField(field, `must be a whole number ${range}`);
}

/** `true` or `false`; the bare name means true. */
export function flag(value: string | undefined, field: string): boolean {
  if (value === undefined || value === 'false' || value === '0') return false;
  if (value === '' || value === 'true' || value === '1') return true;
  throw invalidField(field, 'must be true or false');
}
