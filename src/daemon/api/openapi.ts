import { Type } from 'typebox';
import {
  type DocumentedProgram,
  type DocumentedRoute,
  openApiDocument,
  type RegisteredRoute,
} from '../../base/http/openapi.ts';
import { CONTEXT_DOCS } from '../../contract/documents/context-docs.ts';
import { DELIVERY_DOCS } from '../../contract/documents/delivery-docs.ts';
import { FILE_DOCS } from '../../contract/documents/file-docs.ts';
import { DOCUMENT_DOC, healthDocs } from '../../contract/documents/health-docs.ts';
import { PROCESS_DOCS } from '../../contract/documents/process-docs.ts';
import { type RouteDoc, type RouteDocs, tagged } from '../../contract/documents/route-doc.ts';
import { WEBHOOK_DOCS } from '../../contract/documents/webhook-docs.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import { DeliveryData } from '../../contract/schema/deliveries.ts';
import { namedObject } from '../../contract/schema/field.ts';
import {
  InitialisedData,
  LifecycleData,
  SandboxViewData,
  StateData,
  SwitchedData,
  VERSION_FIELDS,
} from '../../contract/schema/sandboxes.ts';
import { accessOf, type RouteAccess } from './route-access.ts';

const PublishBody = namedObject('PublishRequest', { payload: Type.Record(Type.String(), Type.Unknown()) });
const ReceiptData = namedObject('PublishReceipt', {
  event_id: Type.String(),
  sequence: Type.Integer({ minimum: 1 }),
});
const NamesData = namedObject('EnvironmentNames', { names: Type.Array(Type.String()) });

const PUBLISHING = ['webhook_not_configured', 'outbox_full', 'shutting_down'] as const;

const PUBLISH_DOCS = tagged('events', {
  'POST /webhook/publish': {
    operation_id: 'publishEvent',
    summary: 'Publish an event',
    data: ReceiptData,
    status: 202,
    body: PublishBody,
    headers: {
      'Idempotency-Key': 'a repeated key with the same payload returns the first answer',
      traceparent: 'W3C Trace Context; the delivery carries it on. Ignored where it is not valid',
    },
    errors: ['conflict', ...PUBLISHING],
  },
  'POST /webhook/test': {
    operation_id: 'publishTestEvent',
    summary: 'Publish a test event and wait for its first attempt',
    data: DeliveryData,
    errors: PUBLISHING,
  },
});

const SANDBOX_DOCS = tagged('sandbox', {
  'GET /sandbox': {
    operation_id: 'getSandbox',
    summary: 'Get the state of the sandbox',
    data: SandboxViewData,
  },
  'POST /sandbox/init': {
    operation_id: 'initSandbox',
    summary: 'Give the sandbox its identity and webhook',
    data: InitialisedData,
    errors: ['conflict'],
  },
  'PUT /sandbox/env': {
    operation_id: 'setEnvironment',
    summary: 'Set environment variables for processes started later',
    data: NamesData,
  },
  'POST /sandbox/pause': {
    operation_id: 'pauseSandbox',
    summary: 'Pause the sandbox',
    data: SwitchedData,
    is_body_optional: true,
    errors: ['conflict'],
  },
  'POST /sandbox/resume': {
    operation_id: 'resumeSandbox',
    summary: 'Resume the sandbox',
    data: SwitchedData,
    is_body_optional: true,
    errors: ['conflict'],
  },
  'POST /sandbox/stop': {
    operation_id: 'stopSandbox',
    summary: 'End the sandbox without delivering pending records',
    data: StateData,
    status: 202,
  },
  'POST /sandbox/hold': {
    operation_id: 'holdSandbox',
    summary: 'Quiesce the sandbox while the request body is open',
    media: 'application/x-ndjson',
    body_media: 'application/octet-stream',
    errors: ['conflict'],
  },
  'GET /sandbox/egress': {
    operation_id: 'openEgressTunnel',
    summary: 'Upgrade the connection to a tunnel for one connection to the webhook',
    status: 101,
    errors: ['conflict'],
  },
  'GET /sandbox/ports/:port': {
    operation_id: 'connectToPort',
    summary: 'Upgrade the connection to one to a TCP port of the sandbox',
    status: 101,
    errors: ['bad_gateway'],
  },
  'GET /sandbox/events': {
    operation_id: 'listLifecycleRecords',
    summary: "Read the sandbox's own sandbox.* records as they are stored",
    data: LifecycleData,
  },
});

/** What `/openapi.json` says of each route below `/api/v1` beside its path, access and schemas. */
const API_DOCS: RouteDocs = {
  ...PUBLISH_DOCS,
  ...DELIVERY_DOCS,
  ...PROCESS_DOCS,
  ...CONTEXT_DOCS,
  ...FILE_DOCS,
  ...SANDBOX_DOCS,
};
const ROOT_DOCS: RouteDocs = {
  ...healthDocs(['outbox_unavailable', 'shutting_down'], VERSION_FIELDS),
  'GET /openapi.json': DOCUMENT_DOC,
};

const program: DocumentedProgram = {
  title: 'sandboxd',
  description: 'The local API of the process daemon in a sandbox, and the webhooks that it delivers.',
  security_schemes: {
    token: { type: 'http', scheme: 'bearer', description: 'the control token, over TCP' },
    control_socket: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Control-Scope',
      description: 'on the control socket alone: the scope that the request may reach',
    },
  },
  webhooks: WEBHOOK_DOCS,
};

/** The document of the local API: every route, and a schema of each of the ten events. Source: contract section 4. */
export function daemonDocument(routes: readonly RegisteredRoute[]): object {
  return openApiDocument(program, routes.flatMap(documented));
}

function documented(route: RegisteredRoute): DocumentedRoute[] {
  return [route.method].flat().map((method) => {
    const access = accessOf(method, route.url) ?? 'socket';
    const doc = docOf(method, route.url);
    const body = (route.schema?.body ?? doc.body) === undefined ? [] : BODY_ERRORS;
    const errors = [...(access === 'health' ? HEALTH_ERRORS : ERRORS), ...PROVING[access], ...body];
    return { ...route, method, doc, security: securityOf(access), errors };
  });
}

/** Also `forbidden`: a request of another page or host. */
const HEALTH_ERRORS: readonly ErrorCode[] = ['invalid_request', 'forbidden', 'internal_error'];
const ERRORS: readonly ErrorCode[] = [...HEALTH_ERRORS, 'outbox_unavailable'];
const BODY_ERRORS: readonly ErrorCode[] = ['timeout', 'payload_too_large', 'unsupported_media_type'];
const PROVING: Readonly<Record<RouteAccess, readonly ErrorCode[]>> = {
  health: [],
  open: [],
  read: ['unauthorized'],
  write: ['unauthorized'],
  manage: ['unauthorized'],
  socket: [],
};

function securityOf(access: RouteAccess): Record<string, string[]>[] {
  if (access === 'health' || access === 'open') return [];
  if (access === 'socket') return [{ control_socket: ['manage'] }];
  return [{ token: [] }, { control_socket: [access] }];
}

function docOf(method: string, url: string): RouteDoc {
  const [path, docs] = url.startsWith('/api/v1/')
    ? [url.slice('/api/v1'.length), API_DOCS]
    : [url, ROOT_DOCS];
  const doc = Object.hasOwn(docs, `${method} ${path}`) ? docs[`${method} ${path}`] : undefined;
  if (doc === undefined) throw new Error(`openapi.ts has no row for ${method} ${url}`);
  return doc;
}
