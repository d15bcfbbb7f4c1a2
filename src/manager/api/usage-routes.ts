import { Type } from 'typebox';
import { type HttpApp, success } from '../../base/http/app.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import { closedObject, namedObject, Time } from '../../contract/schema/field.ts';
import { pageLimit } from '../../contract/schema/query.ts';
import { unitOf, WINDOW_TYPES } from '../../contract/usage.ts';
import type { Usage } from '../usage/usage.ts';
import { callerOf } from './auth.ts';

const Kind = Type.Enum(WINDOW_TYPES, { title: 'WindowType' });
const Unit = Type.Enum([...new Set(WINDOW_TYPES.map(unitOf))]);

const PageData = namedObject('UsagePage', {
  windows: Type.Array(
    namedObject('UsageWindow', {
      window_id: Type.String(),
      region_id: Type.String(),
      cluster_id: Type.String(),
      window_type: Kind,
      subject_type: Type.Literal('sandbox'),
      subject_id: Type.String(),
      sandbox_id: Type.String(),
      window_start: Time,
      window_end: Time,
      value: Type.Integer({ minimum: 0 }),
      unit: Unit,
      recorded_at: Time,
    }),
  ),
  next_cursor: Type.String({ minLength: 1 }),
});

const PageQuery = closedObject({
  cursor: Type.Optional(Type.String()),
  limit: pageLimit(LIST_LIMIT, LIST_LIMIT_MAX),
  window_type: Type.Optional(Kind),
});

/** Registers the route of closed usage windows, in commit order. Source: contract section 7, `/api/v1/usage/windows`. */
export function registerUsageRoutes(app: HttpApp, usage: Usage): void {
  const config = {
    scope: 'usage:read' as const,
    doc: {
      operation_id: 'listUsageWindows',
      tag: 'usage' as const,
      summary: "List the team's closed usage windows",
      data: PageData,
    },
  };
  app.get('/api/v1/usage/windows', { config, schema: { querystring: PageQuery } }, async (request) =>
    success(await usage.page(callerOf(request).team_id, request.query)),
  );
}
