import { Type } from 'typebox';
import { type HttpApp, success } from '../../base/http/app.ts';
import { enumParam, queryOf } from '../../base/http/query.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { invalidField } from '../../contract/errors.ts';
import { WINDOW_TYPES } from '../../contract/usage.ts';
import type { Usage } from '../usage/usage.ts';
import { callerOf } from './auth.ts';
import { Time } from './schemas.ts';

const closed = { additionalProperties: false };

const PageData = Type.Object(
  {
    windows: Type.Array(
      Type.Object(
        {
          window_id: Type.String(),
          region_id: Type.String(),
          cluster_id: Type.String(),
          window_type: Type.Enum([...WINDOW_TYPES]),
          subject_type: Type.Literal('sandbox'),
          subject_id: Type.String(),
          sandbox_id: Type.String(),
          window_start: Time,
          window_end: Time,
          value: Type.Integer({ minimum: 0 }),
          unit: Type.Enum(['mib_milliseconds', 'bytes']),
          recorded_at: Time,
        },
        closed,
      ),
    ),
    next_cursor: Type.String({ minLength: 1 }),
  },
  closed,
);

const PageQuery = Type.Object(
  {
    cursor: Type.Optional(Type.String()),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, default: LIST_LIMIT, description: 'above 1000 is capped' }),
    ),
    window_type: Type.Optional(Type.Enum([...WINDOW_TYPES])),
  },
  closed,
);

/** Registers the route of closed usage windows, in commit order. Source: contract section 7, `/api/v1/usage/windows`. */
export function registerUsageRoutes(app: HttpApp, usage: Usage): void {
  const doc = { summary: "The team's closed usage windows", query: PageQuery, data: PageData };
  app.get('/api/v1/usage/windows', { config: { scope: 'usage:read', doc } }, async (request) => {
    const query = queryOf(request.query, ['cursor', 'limit', 'window_type']);
    return success(
      await usage.page(callerOf(request).team_id, {
        cursor: query.cursor,
        limit: limitOf(query.limit),
        window_type: enumParam(query.window_type, 'window_type', WINDOW_TYPES),
      }),
    );
  });
}

/** The limit, capped; also accepts exponents like `1e9`. */
function limitOf(text: string | undefined): number {
  if (text === undefined) return LIST_LIMIT;
  const limit = /^\d+(e\+?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  if (limit >= 1) return Math.min(limit, LIST_LIMIT_MAX);
  throw invalidField('limit', 'must be an integer of at least 1');
}
