import type { Usage } from '../usage/usage.ts';
import { callerOf } from './auth.ts';
import type { ApiHandlers } from './routes.ts';

/** The route of closed usage windows, in commit order. Source: contract section 7, `/api/v1/usage/windows`. */
export function usageHandlers(usage: Usage) {
  return {
    listUsageWindows: ({ request, query }) => usage.page(callerOf(request).team_id, query),
  } satisfies Partial<ApiHandlers>;
}
