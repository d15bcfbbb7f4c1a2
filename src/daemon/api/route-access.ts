import { CONTROL_SCOPES, type ControlScope } from '../../contract/control-scopes.ts';

/**
 * What a route requires of its callers. Source: contract section 4, `--control-token-file` and `--control-socket`.
 * - `health`: nothing, even while the daemon starts
 * - `open`: nothing
 * - `read`, `write`, `manage`: the control token, or on the control socket at least this scope
 * - `socket`: the scope `manage` on the control socket; never served over TCP
 */
export type RouteAccess = 'health' | 'open' | ControlScope | 'socket';

const ROUTES: Readonly<Record<string, RouteAccess>> = {
  'GET /healthz': 'health',
  'GET /readyz': 'health',
  'GET /metrics': 'health',
  'GET /openapi.json': 'open',
  'POST /api/v1/webhook/publish': 'open',
  'POST /api/v1/webhook/test': 'write',
  'GET /api/v1/webhook/deliveries': 'read',
  'GET /api/v1/webhook/deliveries/:event_id': 'read',
  'POST /api/v1/webhook/deliveries/:event_id/replay': 'write',
  'POST /api/v1/webhook/deliveries/replay': 'write',
  'DELETE /api/v1/webhook/deliveries/:event_id': 'write',
  'DELETE /api/v1/webhook/deliveries': 'write',
  'GET /api/v1/events/stream': 'read',
  'POST /api/v1/processes': 'write',
  'GET /api/v1/processes': 'read',
  'GET /api/v1/processes/:process_id': 'read',
  'DELETE /api/v1/processes/:process_id': 'write',
  'GET /api/v1/processes/:process_id/output': 'read',
  // An attached client can also write to the process.
  'GET /api/v1/processes/:process_id/attach': 'write',
  'GET /api/v1/processes/:process_id/wait': 'read',
  'POST /api/v1/processes/:process_id/stdin': 'write',
  'POST /api/v1/processes/:process_id/signal': 'write',
  'POST /api/v1/processes/:process_id/resize': 'write',
  'POST /api/v1/contexts': 'write',
  'GET /api/v1/contexts': 'read',
  'GET /api/v1/contexts/:context_id': 'read',
  'DELETE /api/v1/contexts/:context_id': 'write',
  'POST /api/v1/contexts/:context_id/exec': 'write',
  'POST /api/v1/contexts/:context_id/input': 'write',
  'POST /api/v1/contexts/:context_id/resize': 'write',
  'POST /api/v1/contexts/:context_id/signal': 'write',
  'POST /api/v1/contexts/:context_id/restart': 'write',
  'GET /api/v1/contexts/:context_id/ws': 'write',
  'GET /api/v1/files': 'read',
  'HEAD /api/v1/files': 'read',
  'GET /api/v1/files/stat': 'read',
  'GET /api/v1/files/list': 'read',
  'GET /api/v1/files/watch': 'read',
  'GET /api/v1/files/archive': 'read',
  'PUT /api/v1/files/archive': 'write',
  'POST /api/v1/files': 'write',
  'PUT /api/v1/files': 'write',
  'DELETE /api/v1/files': 'write',
  'POST /api/v1/files/move': 'write',
  'POST /api/v1/files/copy': 'write',
  'GET /api/v1/sandbox': 'read',
  'POST /api/v1/sandbox/init': 'manage',
  'PUT /api/v1/sandbox/env': 'manage',
  'POST /api/v1/sandbox/pause': 'manage',
  'POST /api/v1/sandbox/resume': 'manage',
  'POST /api/v1/sandbox/stop': 'socket',
  'POST /api/v1/sandbox/hold': 'socket',
  'GET /api/v1/sandbox/egress': 'socket',
  'GET /api/v1/sandbox/ports/:port': 'socket',
  'GET /api/v1/sandbox/events': 'socket',
};

/** The access that a route requires, by method and pattern; undefined for an unlisted route, which is refused. */
export function accessOf(method: string, url: string | undefined): RouteAccess | undefined {
  const route = `${method} ${url}`;
  return Object.hasOwn(ROUTES, route) ? ROUTES[route] : undefined;
}

/** Whether the scope in a header includes the required one. */
export function includesScope(given: string | string[] | undefined, needed: ControlScope): boolean {
  return CONTROL_SCOPES.indexOf(given as ControlScope) >= CONTROL_SCOPES.indexOf(needed);
}
