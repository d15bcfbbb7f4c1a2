import type { WebhookEgress } from '../contract/egress.ts';
import { ApiError, type ErrorCode, invalidField } from '../contract/errors.ts';
import type { SandboxView } from '../contract/sandboxes.ts';
import type { DaemonResponse } from './control-client.ts';
import type { RuntimeSpec, RuntimeState } from './runtime.ts';

/**
 * The body of an init; `allow_cidrs` are the ranges that the webhook may reach in addition to public addresses. Through
 * the manager the daemon is given none: addresses are checked where they are dialled.
 * Source: contract section 4, POST `/sandbox/init`.
 */
export function initBody(spec: RuntimeSpec, allow_cidrs: string[], egress: WebhookEgress): object {
  const { sandbox_id, team_id, webhook, env, record_key } = spec;
  if (!webhook) return { sandbox_id, team_id, env, record_key };
  const { url, secret, watch_dir, watch_ignore, events } = webhook;
  const given = {
    url,
    ...(egress === 'manager' ? { egress } : { allow_cidrs }),
    ...(secret === '' ? {} : { secret }),
    ...(watch_dir === null ? {} : { watch_dir }),
    ...(watch_ignore.length === 0 ? {} : { watch_ignore }),
    ...(events === null ? {} : { events }),
  };
  return { sandbox_id, team_id, webhook: given, env, record_key };
}

/** The state in the answer of GET `/sandbox`, `lost` for one that is none of the daemon's; null if it did not succeed. */
export function stateIn(answer: DaemonResponse): RuntimeState | null {
  if (!isSuccess(answer)) return null;
  const { state } = fieldsOf(answer.data) as Partial<SandboxView>;
  return state === 'paused' || state === 'running' ? state : 'lost';
}

/** Whether the daemon has done what it was asked. */
export function isSuccess(
  answer: DaemonResponse,
): answer is Extract<DaemonResponse, { outcome: 'answered' }> {
  return answer.outcome === 'answered' && answer.status === 200;
}

const MESSAGE_MAX = 1024;

/** The error for an answer that is no success; fields are named as in the spec. Nothing in the answer is trusted. */
export function daemonError(answer: DaemonResponse): ApiError {
  if (answer.outcome === 'unreachable') {
    return new ApiError('internal_error', `The sandbox's daemon does not answer (${answer.reason}).`);
  }
  const { code, message, details } = fieldsOf(answer.error);
  const known = PASSED_CODES.find((each) => each === code) ?? 'internal_error';
  const said = typeof message === 'string' ? message.slice(0, MESSAGE_MAX) : undefined;
  const { field } = fieldsOf(details);
  if (known !== 'invalid_request' || typeof field !== 'string' || field.length > MESSAGE_MAX) {
    return new ApiError(known, said);
  }
  const prefix = `${field}: `;
  return invalidField(field, said?.startsWith(prefix) ? said.slice(prefix.length) : (said ?? 'is invalid'));
}

/** The codes that are passed on to the caller; any other becomes `internal_error`. */
const PASSED_CODES: ErrorCode[] = [
  'invalid_request',
  'conflict',
  'gone',
  'internal_error',
  'outbox_full',
  'outbox_unavailable',
  'shutting_down',
];

/** The body that replaces an environment by `env`; `answer` is that of `/sandbox/env`, with the names that are there. */
export function environmentBody(answer: DaemonResponse, env: Record<string, string>): object {
  return { env: { ...Object.fromEntries(namesIn(answer).map((name) => [name, null])), ...env } };
}

/** The names of variables in the answer of `/sandbox/env`; empty if there are none. */
export function namesIn(answer: DaemonResponse): string[] {
  const { names } = fieldsOf(answer.outcome === 'answered' ? answer.data : null);
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
