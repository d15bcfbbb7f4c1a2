import { checkQueryText } from '../../base/http/query.ts';
import type { ControlScope } from '../../contract/control-scopes.ts';

type Row = [
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE',
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
  /** Which sandboxes answer it; `up` is running or paused: a paused one keeps its deliveries, events and files readable. */
  answered_by: 'running' | 'up';
  /** Whether a call counts as use of the sandbox, which keeps it from being idle. */
  is_use: boolean;
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

const CONTEXTS: Row[] = [
  ['GET', '/contexts', 'read', 'List the contexts of a sandbox'],
  ['POST', '/contexts', 'write', 'Create a context: start a process'],
  ['GET', '/contexts/:context_id', 'read', 'Get one context with its output'],
  ['DELETE', '/contexts/:context_id', 'write', 'End a context'],
  ['POST', '/contexts/:context_id/exec', 'write', 'Write to a context and wait until it has ended'],
  ['POST', '/contexts/:context_id/input', 'write', 'Write to a context'],
  ['POST', '/contexts/:context_id/resize', 'write', "Resize a context's terminal"],
  ['POST', '/contexts/:context_id/signal', 'write', 'Send a signal to a context'],
  ['POST', '/contexts/:context_id/restart', 'write', 'End a context and start it anew'],
  ['GET', '/contexts/:context_id/ws', 'write', 'Attach to a context over a WebSocket'],
];

const DELIVERIES: Row[] = [
  ['GET', '/webhook/deliveries', 'read', "List the deliveries of a sandbox's daemon"],
  ['GET', '/webhook/deliveries/:event_id', 'read', 'Get one delivery with its body and attempts'],
  ['POST', '/webhook/deliveries/replay', 'write', 'Send all records in a state again'],
  ['POST', '/webhook/deliveries/:event_id/replay', 'write', 'Send a record again'],
];

const EVENTS: Row[] = [['GET', '/events/stream', 'read', 'Follow every event of one sandbox']];

const FILE_READS: Row[] = [
  ['GET', '/files', 'read', 'Download a file'],
  ['HEAD', '/files', 'read', 'Ask for the size and version of a file'],
  ['GET', '/files/stat', 'read', 'Describe a path'],
  ['GET', '/files/list', 'read', 'List a directory'],
  ['GET', '/files/watch', 'read', 'Watch directories over a WebSocket'],
  ['GET', '/files/archive', 'read', 'Download a directory as an archive'],
];

const FILE_WRITES: Row[] = [
  ['POST', '/files', 'write', 'Write a file, or make a directory with mkdir=true'],
  ['PUT', '/files', 'write', 'Write a file'],
  ['DELETE', '/files', 'write', 'Remove a file or directory'],
  ['POST', '/files/move', 'write', 'Move a file or directory'],
  ['POST', '/files/copy', 'write', 'Copy a file or directory'],
  ['PUT', '/files/archive', 'write', 'Unpack an archive into a directory'],
];

/** Their bodies are streams of any length. */
const STREAMED = new Set([
  'POST /processes/:process_id/stdin',
  'POST /files',
  'PUT /files',
  'PUT /files/archive',
]);

/**
 * All routes that are passed through. Nothing else can be reached: the path is built from the row, never taken from the
 * caller. Source: contract section 7, rows `…/contexts…` and `…/processes…, /files…, /webhook/deliveries…`.
 */
export const PASSED_ROUTES: readonly PassedRoute[] = [
  ...PROCESSES.map((row) => routeOf(row, 'running')),
  ...CONTEXTS.map((row) => routeOf(row, 'running')),
  ...DELIVERIES.map((row) => routeOf(row, 'up')),
  ...EVENTS.map((row) => routeOf(row, 'up')),
  ...FILE_READS.map((row) => routeOf(row, 'up')),
  ...FILE_WRITES.map((row) => routeOf(row, 'running')),
];

function routeOf([method, path, scope, summary]: Row, answered_by: PassedRoute['answered_by']): PassedRoute {
  return {
    method,
    path,
    scope,
    summary,
    answered_by,
    is_use: !path.startsWith('/webhook/') && !path.startsWith('/events/'),
    is_upgrade: /\/(attach|watch|ws)$/.test(path),
    is_streamed: STREAMED.has(`${method} ${path}`),
  };
}

/** Ids of processes and events. */
const PARAMETER = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;

/**
 * The path at the daemon, built from the route's text, validated ids and the re-encoded query; null if a parameter is
 * not a valid id. Throws `invalid_request` for a query that is not UTF-8: encoded anew, it would be another one.
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
  checkQueryText(url);
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const encoded = new URLSearchParams(query).toString();
  return `/api/v1${segments.join('/')}${encoded === '' ? '' : `?${encoded}`}`;
}
