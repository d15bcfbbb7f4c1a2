import { Type } from 'typebox';
import { closedObject } from './field.ts';

/** Schemas for parameters of a query, which arrive as text; `base/http/query.ts` converts them. */

/** The query of a route without parameters. */
export const NoQuery = closedObject({});

/** A switch: the bare name, `true` and `1` turn it on; `false` and `0` turn it off, like its absence. */
export const Flag = Type.Boolean({ default: false });

/** The length of a page: `standard` if absent. A number above `cap` is capped, never refused. */
export function pageLimit(standard: number, cap: number) {
  return Type.Integer({
    minimum: 1,
    default: standard,
    description: `values above ${cap} are lowered to ${cap}`,
    'x-cap': cap,
  });
}

/** An integer of at least `minimum`, and at most `maximum`. */
export function integerFrom(minimum: number, maximum?: number) {
  return Type.Integer({ minimum, ...(maximum === undefined ? {} : { maximum }) });
}
