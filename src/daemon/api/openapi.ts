import { type DocumentedProgram, type DocumentedRoute, openApiDocument } from '../../base/http/openapi.ts';
import type { ErrorCode } from '../../contract/errors.ts';
import { DAEMON_ROUTES } from '../../contract/routes/daemon.ts';
import type { DaemonAccess, DaemonRoute } from '../../contract/routes/route.ts';
import { WEBHOOK_DOCS } from '../../contract/routes/webhook.ts';

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

/** The document of the local API: every route, and a schema of each of the ten events. Contract section 4. */
export function daemonDocument(): object {
  return openApiDocument(program, Object.entries(DAEMON_ROUTES).map(documented));
}

function documented([id, row]: [string, DaemonRoute]): DocumentedRoute {
  const { access, body } = row;
  const errors = [
    ...(access === 'health' ? HEALTH_ERRORS : ERRORS),
    ...PROVING[access],
    ...(body === undefined ? [] : BODY_ERRORS),
  ];
  return { id, row, security: securityOf(access), errors };
}

/** Also `forbidden`: a request of another page or host. */
const HEALTH_ERRORS: readonly ErrorCode[] = ['invalid_request', 'forbidden', 'internal_error'];
const ERRORS: readonly ErrorCode[] = [...HEALTH_ERRORS, 'outbox_unavailable'];
const BODY_ERRORS: readonly ErrorCode[] = ['timeout', 'payload_too_large', 'unsupported_media_type'];
const PROVING: Readonly<Record<DaemonAccess, readonly ErrorCode[]>> = {
  health: [],
  open: [],
  read: ['unauthorized'],
  write: ['unauthorized'],
  manage: ['unauthorized'],
  socket: [],
};

function securityOf(access: DaemonAccess): Record<string, string[]>[] {
  if (access === 'health' || access === 'open') return [];
  if (access === 'socket') return [{ control_socket: ['manage'] }];
  return [{ token: [] }, { control_socket: [access] }];
}
