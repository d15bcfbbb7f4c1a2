import { ApiError, type ErrorCode } from '../contract/errors.ts';
import type { DaemonResponse } from './control-client.ts';
import type { RuntimeSpec } from './runtime.ts';

/** The fields of an init's body, as the claim that they come from names them. */
const CLAIM_FIELDS: [daemon: string, claim: string][] = [
  ['webhook.', 'config.webhook.'],
  ['env', 'config.env_vars'],
];

/**
 * What a daemon is told once; `allow_cidrs` are the ranges that its webhook may lead to beside public addresses.
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

/** An answer that is no success, as the error it is; fields are named as in a claim. Nothing of it is taken on trust. */
export function daemonError(answer: DaemonResponse): ApiError {
  if (answer.outcome === 'unreachable') {
    return new ApiError('internal_error', `The sandbox's daemon does not answer (${answer.reason}).`);
  }
  const { code, message, details } = fieldsOf(answer.error);
  const known = REFUSALS.find((each) => each === code) ?? 'internal_error';
  const said = typeof message === 'string' ? message.slice(0, MESSAGE_MAX) : undefined;
  const { field } = fieldsOf(details);
  if (typeof field !== 'string' || field.length > MESSAGE_MAX) return new ApiError(known, said);
  const [from, to] = CLAIM_FIELDS.find(([prefix]) => field.startsWith(prefix)) ?? [];
  if (from === undefined || to === undefined) return new ApiError(known, said, { field });
  const name = field.replace(from, to);
  return new ApiError(known, said?.replace(field, name), { field: name });
}

/** What a daemon may refuse a change with; whatever else it says is its own trouble. */
const REFUSALS: ErrorCode[] = [
  'invalid_request',
  'conflict',
  'gone',
  'internal_error',
  'outbox_full',
  'outbox_unavailable',
  'shutting_down',
];

/** The names of variables that a daemon tells. */
export function namesIn(answer: DaemonResponse): string[] {
  const { names } = fieldsOf(answer.outcome === 'answered' ? answer.data : null);
  return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
