import { ApiError, type ErrorCode } from '../contract/errors.ts';
import type { DaemonResponse } from './control-client.ts';
import type { RuntimeSpec } from './runtime.ts';

/** Prefixes of the fields of an init, and their names in the claim that they come from. */
const CLAIM_FIELDS: [daemon: string, claim: string][] = [
  ['webhook.', 'config.webhook.'],
  ['env', 'config.env_vars'],
];

/**
 * The body of an init; `allow_cidrs` are the ranges that the webhook may reach in addition to public addresses.
 * Source: contract section 4, POST `/sandbox/init`.
 */
export function initBody(spec: RuntimeSpec, allow_cidrs: string[]): object {
  const { sandbox_id, team_id, webhook, env, record_key } = spec;
  if (!webhook) return { sandbox_id, team_id, env, record_key };
  const { url, secret, watch_dir } = webhook;
  const given = {
    url,
    allow_cidrs,
    ...(secret === '' ? {} : { secret }),
    ...(watch_dir === null ? {} : { watch_dir }),
  };
  return { sandbox_id, team_id, webhook: given, env, record_key };
}

const MESSAGE_MAX = 1024;

/** The error for an answer that is no success; fields are named as in a claim. Nothing in the answer is trusted. */
export function daemonError(answer: DaemonResponse): ApiError {
  if (answer.outcome === 'unreachable') {
    return new ApiError('internal_error', `The sandbox's daemon does not answer (${answer.reason}).`);
  }
  const { code, message, details } = fieldsOf(answer.error);
  const known = PASSED_CODES.find((each) => each === code) ?? 'internal_error';
  const said = typeof message === 'string' ? message.slice(0, MESSAGE_MAX) : undefined;
  const { field } = fieldsOf(details);
  if (typeof field !== 'string' || field.length > MESSAGE_MAX) return new ApiError(known, said);
  const [from, to] = CLAIM_FIELDS.find(([prefix]) => field.startsWith(prefix)) ?? [];
  if (from === undefined || to === undefined) return new ApiError(known, said, { field });
  const name = field.replace(from, to);
  return new ApiError(known, said?.replace(field, name), { field: name });
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

/** The names of variables in the answer of `/sandbox/env`; empty if there are none. */
export function namesIn(answer: DaemonResponse): string[] {
  const { names } = fieldsOf(answer.outcome === 'answered' ? answer.data : null);
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
