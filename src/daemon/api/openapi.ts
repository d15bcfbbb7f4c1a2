import { Type } from 'typebox';
import {
  type DocumentedRoute,
  openApiDocument,
  type RegisteredRoute,
  type RouteDoc,
} from '../../base/http/openapi.ts';
import { EVENT_TYPES } from '../../contract/events.ts';
import { ContextData, ContextExecData, ContextListData } from '../../contract/schema/contexts.ts';
import { DeliveryData, DeliveryPageData, ReplayedData } from '../../contract/schema/deliveries.ts';
import { eventSchema } from '../../contract/schema/events.ts';
import { closedObject } from '../../contract/schema/field.ts';
import {
  CopiedData,
  DeletedData,
  FileEntryData,
  FilePageData,
  MovedData,
  UnpackedData,
  WrittenData,
} from '../../contract/schema/files.ts';
import { ProcessData, StartedData } from '../../contract/schema/processes.ts';
import { LifecycleData, SandboxViewData, StateData } from '../../contract/schema/sandboxes.ts';
import { accessOf } from './route-access.ts';

const PublishBody = closedObject({ payload: Type.Record(Type.String(), Type.Unknown()) });
const ReceiptData = closedObject({ event_id: Type.String(), sequence: Type.Integer({ minimum: 1 }) });
const NamesData = closedObject({ names: Type.Array(Type.String()) });
const ProcessListData = closedObject({ processes: Type.Array(ProcessData) });

const doneData = (what: string) => closedObject({ [what]: Type.Literal(true) });

/** Errors of file operations, told of the path or the field at fault. Source: contract section 4, "Files". */
const FINDING = [
  'invalid_request',
  'permission_denied',
  'forbidden',
  'not_found',
  'not_a_directory',
] as const;
const READING = [...FINDING, 'is_a_directory', 'not_a_file', 'too_many_requests'] as const;
const CHANGING = [
  ...FINDING,
  'is_a_directory',
  'not_a_file',
  'conflict',
  'no_space',
  'shutting_down',
] as const;

const conditional = {
  Range: 'the bytes to send',
  'If-Range': 'send the range only of this version, otherwise everything',
  'If-Match': 'answer 412 for any other version',
  'If-None-Match': 'answer 304 for this version',
  'If-Modified-Since': 'answer 304 for what has not changed since, without If-None-Match',
  'If-Unmodified-Since': 'answer 412 for what has changed since, without If-Match',
};
const download = {
  headers: conditional,
  errors: [...READING, 'precondition_failed', 'range_not_satisfiable'],
} as const;
const upload = {
  data: WrittenData,
  status: 201,
  body_media: 'application/octet-stream',
  headers: {
    'If-Match': 'write only over this version',
    'If-None-Match': '*: write only where there is nothing',
    'If-Unmodified-Since': 'write only over what has not changed since, without If-Match',
  },
  errors: [...CHANGING, 'already_exists', 'precondition_failed', 'too_many_requests'],
} as const;
const resumed = { 'Last-Event-ID': 'the id of the last event received' };

/** What `/openapi.json` says of each route beside its path, access and schemas. */
const DOCS: Readonly<Record<string, RouteDoc>> = {
  'GET /healthz': { summary: 'Liveness' },
  'GET /readyz': { summary: 'Whether the daemon is ready, and what is degraded' },
  'GET /metrics': { summary: 'Metrics in the Prometheus text format', media: 'text/plain' },
  'GET /openapi.json': { summary: 'This OpenAPI document' },
  'POST /api/v1/webhook/publish': {
    summary: 'Publish an event',
    data: ReceiptData,
    status: 202,
    body: PublishBody,
    headers: { 'Idempotency-Key': 'a repeated key with the same payload returns the first answer' },
  },
  'POST /api/v1/webhook/test': {
    summary: 'Publish a test event and wait for its first attempt',
    data: DeliveryData,
  },
  'GET /api/v1/webhook/deliveries': { summary: 'List deliveries, newest first', data: DeliveryPageData },
  'GET /api/v1/webhook/deliveries/:event_id': {
    summary: 'Get one delivery with its body and attempts',
    data: DeliveryData,
  },
  'POST /api/v1/webhook/deliveries/:event_id/replay': { summary: 'Send a record again', data: DeliveryData },
  'POST /api/v1/webhook/deliveries/replay': {
    summary: 'Send all records in a state again',
    data: ReplayedData,
  },
  'GET /api/v1/events/stream': {
    summary: 'Stream records as they are committed',
    media: 'text/event-stream',
    headers: resumed,
  },
  'POST /api/v1/processes': { summary: 'Start a process', data: StartedData, status: 201 },
  'GET /api/v1/processes': { summary: 'List processes', data: ProcessListData },
  'GET /api/v1/processes/:process_id': { summary: 'Get one process', data: ProcessData },
  'DELETE /api/v1/processes/:process_id': { summary: 'End a process', data: ProcessData },
  'GET /api/v1/processes/:process_id/output': {
    summary: "Read a process's output",
    media: 'text/event-stream',
    headers: resumed,
  },
  'GET /api/v1/processes/:process_id/attach': {
    summary: 'Attach to a process over a WebSocket',
    status: 101,
  },
  'GET /api/v1/processes/:process_id/wait': {
    summary: 'Wait until a process has ended or is ready',
    data: ProcessData,
  },
  'POST /api/v1/processes/:process_id/stdin': {
    summary: "Write to a process's stdin",
    status: 204,
    body_media: 'application/octet-stream',
  },
  'POST /api/v1/processes/:process_id/signal': { summary: 'Send a signal to a process', status: 204 },
  'POST /api/v1/processes/:process_id/resize': { summary: "Resize a process's terminal", status: 204 },
  'POST /api/v1/contexts': { summary: 'Create a context: start a process', data: ContextData, status: 201 },
  'GET /api/v1/contexts': { summary: 'List contexts', data: ContextListData },
  'GET /api/v1/contexts/:context_id': { summary: 'Get one context with its output', data: ContextData },
  'DELETE /api/v1/contexts/:context_id': { summary: 'End a context', data: DeletedData },
  'POST /api/v1/contexts/:context_id/exec': {
    summary: 'Write to a context and wait until it has ended',
    data: ContextExecData,
  },
  'POST /api/v1/contexts/:context_id/input': { summary: 'Write to a context', data: doneData('written') },
  'POST /api/v1/contexts/:context_id/resize': {
    summary: "Resize a context's terminal",
    data: doneData('resized'),
  },
  'POST /api/v1/contexts/:context_id/signal': {
    summary: 'Send a signal to a context',
    data: doneData('signaled'),
  },
  'POST /api/v1/contexts/:context_id/restart': {
    summary: 'End a context and start it anew',
    data: ContextData,
  },
  'GET /api/v1/contexts/:context_id/ws': { summary: 'Attach to a context over a WebSocket', status: 101 },
  'GET /api/v1/files': {
    summary: 'Download a file',
    media: 'application/octet-stream',
    ...download,
  },
  'HEAD /api/v1/files': { summary: 'Ask for the size and version of a file', ...download },
  'GET /api/v1/files/stat': { summary: 'Describe a path', data: FileEntryData, errors: FINDING },
  'GET /api/v1/files/list': { summary: 'List a directory', data: FilePageData, errors: FINDING },
  'GET /api/v1/files/watch': {
    summary: 'Watch directories over a WebSocket',
    status: 101,
    errors: ['invalid_request', 'permission_denied'],
  },
  'GET /api/v1/files/archive': {
    summary: 'Download a directory as an archive',
    media: 'application/x-tar',
    errors: [...READING, 'conflict'],
  },
  'PUT /api/v1/files/archive': {
    summary: 'Unpack an archive into a directory',
    data: UnpackedData,
    body_media: 'application/x-tar',
    errors: [...CHANGING, 'too_many_requests'],
  },
  'POST /api/v1/files': { summary: 'Write a file, or make a directory with mkdir=true', ...upload },
  'PUT /api/v1/files': { summary: 'Write a file', ...upload },
  'DELETE /api/v1/files': {
    summary: 'Remove a file or directory',
    data: DeletedData,
    errors: [...FINDING, 'conflict', 'directory_not_empty', 'shutting_down'],
  },
  'POST /api/v1/files/move': {
    summary: 'Move a file or directory',
    data: MovedData,
    errors: [...CHANGING, 'already_exists', 'directory_not_empty'],
  },
  'POST /api/v1/files/copy': {
    summary: 'Copy a file or directory',
    data: CopiedData,
    errors: [...CHANGING, 'already_exists', 'directory_not_empty', 'too_many_requests'],
  },
  'GET /api/v1/sandbox': { summary: 'Get the state of the sandbox', data: SandboxViewData },
  'POST /api/v1/sandbox/init': { summary: 'Give the sandbox its identity and webhook', data: StateData },
  'PUT /api/v1/sandbox/env': {
    summary: 'Set environment variables for processes started later',
    data: NamesData,
  },
  'POST /api/v1/sandbox/pause': { summary: 'Pause the sandbox', data: StateData, is_body_optional: true },
  'POST /api/v1/sandbox/resume': { summary: 'Resume the sandbox', data: StateData, is_body_optional: true },
  'POST /api/v1/sandbox/stop': {
    summary: 'End the sandbox without delivering pending records',
    data: StateData,
    status: 202,
  },
  'POST /api/v1/sandbox/hold': {
    summary: 'Quiesce the sandbox while the request body is open',
    media: 'application/x-ndjson',
    body_media: 'application/octet-stream',
  },
  'GET /api/v1/sandbox/egress': {
    summary: 'Upgrade the connection to a tunnel for one connection to the webhook',
    status: 101,
  },
  'GET /api/v1/sandbox/ports/:port': {
    summary: 'Upgrade the connection to one to a TCP port of the sandbox',
    status: 101,
  },
  'GET /api/v1/sandbox/events': {
    summary: "Read the sandbox's own sandbox.* records as they are stored",
    data: LifecycleData,
  },
};

/** The document of the local API: every route, and a schema of each of the ten events. Source: contract section 4. */
export function daemonDocument(routes: readonly RegisteredRoute[]): object {
  const events = Object.fromEntries(EVENT_TYPES.map((type) => [type, eventSchema(type)]));
  return openApiDocument('sandboxd', routes.flatMap(documented), events);
}

function documented(route: RegisteredRoute): DocumentedRoute[] {
  return [route.method].flat().map((method) => {
    const access = accessOf(method, route.url);
    const scopes = access === 'health' || access === 'open' ? null : [];
    return { ...route, method, doc: docOf(method, route.url), scopes };
  });
}

function docOf(method: string, url: string): RouteDoc {
  const doc = Object.hasOwn(DOCS, `${method} ${url}`) ? DOCS[`${method} ${url}`] : undefined;
  if (doc === undefined) throw new Error(`openapi.ts has no row for ${method} ${url}`);
  return doc;
}
