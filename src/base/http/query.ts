import { invalidField } from '../../contract/errors.ts';

/** Query parameters with known names. Every function here throws `invalid_request` that names the parameter. */
export type Query = Record<string, string | undefined>;

/** Checks that a query has only parameters of `names`, each given once, and returns it. */
export function queryOf(query: unknown, names: readonly string[]): Query {
  for (const [name, value] of Object.entries(query as object)) {
    if (!names.includes(name)) throw invalidField(name, 'unknown query parameter');
    if (typeof value !== 'string') throw invalidField(name, 'must be given once');
  }
  return query as Query;
}

/** Returns the value if it is one of `values`; undefined if it is absent. */
export function enumParam<Value extends string>(
  value: string | undefined,
  field: string,
  values: readonly Value[],
): Value | undefined {
  if (value === undefined) return undefined;
  const found = values.find((each) => each === value);
  if (!found) throw invalidField(field, `must be one of ${values.join(', ')}`);
  return found;
}

/** Parses an integer from `least` to `most`, of up to 15 digits so that it is exact; undefined if it is absent. */
export function integerParam(
  value: string | undefined,
  field: string,
  least = 1,
  most = Number.MAX_SAFE_INTEGER,
): number | undefined {
  if (value === undefined) return undefined;
  const number = /^(0|[1-9]\d{0,14})$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  throw invalidField(field, `must be an integer ${range}`);
}

/** Parses `true`, `false`, `1` or `0`; the bare name means true, an absent one false. */
export function flagParam(value: string | undefined, field: string): boolean {
  if (value === undefined || value === 'false' || value === '0') return false;
  if (value === '' || value === 'true' || value === '1') return true;
  throw invalidField(field, 'must be true or false');
}
