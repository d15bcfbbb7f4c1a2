import { checkQueryText } from '../../base/http/query.ts';
import type { ControlScope } from '../../contract/control-scopes.ts';
import { CONTEXT_DOCS } from '../../contract/documents/context-docs.ts';
import { DELIVERY_DOCS } from '../../contract/documents/delivery-docs.ts';
import { FILE_DOCS } from '../../contract/documents/file-docs.ts';
import { PROCESS_DOCS } from '../../contract/documents/process-docs.ts';
import type { RouteDoc, RouteDocs } from '../../contract/documents/route-doc.ts';
import type { TransferWay } from '../../contract/transfer.ts';
import type { Feature } from '../../contract/versions.ts';

const DOCS: RouteDocs = { ...PROCESS_DOCS, ...CONTEXT_DOCS, ...DELIVERY_DOCS, ...FILE_DOCS };

type Row = [
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  scope: Exclude<ControlScope, 'manage'>,
  needs?: Feature,
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
  /** Where its bytes are counted. */
  way: TransferWay;
  /** Answered by a WebSocket alone. */
  is_upgrade: boolean;
  /** The body is a stream of any length; otherwise it is read whole first, up to the limit for bodies. */
  is_streamed: boolean;
  /** What an older daemon may not have: it is asked first. */
  needs: Feature | null;
  /** As the daemon documents it. */
  doc: RouteDoc;
}

const PROCESSES: Row[] = [
  ['GET', '/processes', 'read'],
  ['POST', '/processes', 'write'],
  ['GET', '/processes/:process_id', 'read'],
  ['DELETE', '/processes/:process_id', 'write'],
  ['GET', '/processes/:process_id/output', 'read'],
  // Attaching includes writing.
  ['GET', '/processes/:process_id/attach', 'write'],
  ['GET', '/processes/:process_id/wait', 'read'],
  ['POST', '/processes/:process_id/stdin', 'write'],
  ['POST', '/processes/:process_id/signal', 'write'],
  ['POST', '/processes/:process_id/resize', 'write'],
];

const CONTEXTS: Row[] = [
  ['GET', '/contexts', 'read'],
  ['POST', '/contexts', 'write'],
  ['GET', '/contexts/:context_id', 'read'],
  ['DELETE', '/contexts/:context_id', 'write'],
  ['POST', '/contexts/:context_id/exec', 'write'],
  ['POST', '/contexts/:context_id/input', 'write'],
  ['POST', '/contexts/:context_id/resize', 'write'],
  ['POST', '/contexts/:context_id/signal', 'write'],
  ['POST', '/contexts/:context_id/restart', 'write'],
  ['GET', '/contexts/:context_id/ws', 'write'],
];

const DELIVERIES: Row[] = [
  ['GET', '/webhook/deliveries', 'read'],
  ['GET', '/webhook/deliveries/:event_id', 'read'],
  ['POST', '/webhook/deliveries/replay', 'write'],
  ['POST', '/webhook/deliveries/:event_id/replay', 'write'],
  ['DELETE', '/webhook/deliveries', 'write', 'discard_deliveries'],
  ['DELETE', '/webhook/deliveries/:event_id', 'write', 'discard_deliveries'],
];

const EVENTS: Row[] = [['GET', '/events/stream', 'read']];

const FILE_READS: Row[] = [
  ['GET', '/files', 'read'],
  ['HEAD', '/files', 'read'],
  ['GET', '/files/stat', 'read'],
  ['GET', '/files/list', 'read'],
  ['GET', '/files/watch', 'read'],
  ['GET', '/files/archive', 'read'],
];

const FILE_WRITES: Row[] = [
  ['POST', '/files', 'write'],
  ['PUT', '/files', 'write'],
  ['DELETE', '/files', 'write'],
  ['POST', '/files/move', 'write'],
  ['POST', '/files/copy', 'write'],
  ['PUT', '/files/archive', 'write'],
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
  ...PROCESSES.map((row) => routeOf(row, 'processes', 'running')),
  ...CONTEXTS.map((row) => routeOf(row, 'processes', 'running')),
  ...DELIVERIES.map((row) => routeOf(row, 'events', 'up')),
  ...EVENTS.map((row) => routeOf(row, 'events', 'up')),
  ...FILE_READS.map((row) => routeOf(row, 'files', 'up')),
  ...FILE_WRITES.map((row) => routeOf(row, 'files', 'running')),
];

function routeOf(
  [method, path, scope, needs]: Row,
  way: TransferWay,
  answered_by: PassedRoute['answered_by'],
): PassedRoute {
  return {
    method,
    path,
    scope,
    needs: needs ?? null,
    doc: docOf(method, path),
    answered_by,
    way,
    is_use: !path.startsWith('/webhook/') && !path.startsWith('/events/'),
    is_upgrade: /\/(attach|watch|ws)$/.test(path),
    is_streamed: STREAMED.has(`${method} ${path}`),
  };
}

function docOf(method: string, path: string): RouteDoc {
  const doc = DOCS[`${method} ${path}`];
  if (doc === undefined) throw new Error(`contract/documents has no row for ${method} ${path}`);
  return { ...doc, errors: [...(doc.errors ?? []), 'not_found', 'conflict', 'too_many_requests'] };
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
