import type { ControlScope } from '../../contract/control-scopes.ts';

type Row = [
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  scope: Exclude<ControlScope, 'manage'>,
  summary: string,
];

/** A route of a sandbox's daemon that callers of the manager can reach. */
export interface PassedRoute {
  method: Row[0];
  /** Below the sandbox's path at the manager, and below `/api/v1` at the daemon. */
  path: string;
  /** The scope that the caller's token needs, and the only one that the daemon is asked to grant. */
  scope: Row[2];
  /** Which sandboxes answer it; `up` is running or paused: a paused one keeps its deliveries readable. */
  answered_by: 'running' | 'up';
  /** Answered by a WebSocket alone. */
  is_upgrade: boolean;
  /** The body is a stream of any length; otherwise it is read whole first, up to the limit for bodies. */
  is_streamed: boolean;
  summary: string;
}

const PROCESSES: Row[] = [
  ['GET', '/processes', 'read', 'List the processes of a sandbox'],
  ['POST', '/processes', 'write', 'Start a process'],
  ['GET', '/processes/:process_id', 'read', 'Get one process'],
  ['DELETE', '/processes/:process_id', 'write', 'End a process'],
  ['GET', '/processes/:process_id/output', 'read', "Read a process's output"],
  // Attaching includes writing.
  ['GET', '/processes/:process_id/attach', 'write', 'Attach to a process over a WebSocket'],
  ['GET', '/processes/:process_id/wait', 'read', 'Wait until a process has ended or is ready'],
  ['POST', '/processes/:process_id/stdin', 'write', "Write to a process's stdin"],
  ['POST', '/processes/:process_id/signal', 'write', 'Send a signal to a process'],
  ['POST', '/processes/:process_id/resize', 'write', "Resize a process's terminal"],
];

const DELIVERIES: Row[] = [
  ['GET', '/webhook/deliveries', 'read', "List the deliveries of a sandbox's daemon"],
  ['GET', '/webhook/deliveries/:event_id', 'read', 'Get one delivery with its body and attempts'],
  ['POST', '/webhook/deliveries/replay', 'write', 'Send all records in a state again'],
  ['POST', '/webhook/deliveries/:event_id/replay', 'write', 'Send a record again'],
];

/**
 * All routes that are passed through. Nothing else can be reached: the path is built from the row, never taken from the
 * caller. Source: contract section 7, row `…/processes…, /webhook/deliveries…`.
 */
export const PASSED_ROUTES: readonly PassedRoute[] = [
  ...PROCESSES.map((row) => routeOf(row, 'running')),
  ...DELIVERIES.map((row) => routeOf(row, 'up')),
];

function routeOf([method, path, scope, summary]: Row, answered_by: PassedRoute['answered_by']): PassedRoute {
  return {
    method,
    path,
    scope,
    summary,
    answered_by,
    is_upgrade: path.endsWith('/attach'),
    is_streamed: path.endsWith('/stdin'),
  };
}

/** Ids of processes and events. */
const PARAMETER = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;

/**
 * The path at the daemon, built from the route's text, validated ids and the re-encoded query; null if a parameter is
 * not a valid id.
 */
export function daemonPath(
  { path }: PassedRoute,
  parameters: Record<string, string>,
  url: string,
): string | null {
  const segments = path.split('/').map((segment) => {
    if (!segment.startsWith(':')) return segment;
    const value = parameters[segment.slice(1)] ?? '';
    return PARAMETER.test(value) ? value : null;
  });
  if (segments.includes(null)) return null;
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const encoded = new URLSearchParams(query).toString();
  return `/api/v1${segments.join('/')}${encoded === '' ? '' : `?${encoded}`}`;
}
