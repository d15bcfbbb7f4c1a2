import { CatalogueError, type ErrorCode, isErrorCode } from '../contract/errors.ts';
import type { Answer } from './control-client.ts';
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
export function initBody({ sandbox_id, team_id, webhook, env }: RuntimeSpec, allow_cidrs: string[]): object {
  if (!webhook) return { sandbox_id, team_id, env };
  const { url, secret, watch_dir } = webhook;
  const given = {
    url,
    allow_cidrs,
    ...(secret === '' ? {} : { secret }),
    ...(watch_dir === null ? {} : { watch_dir }),
  };
  return { sandbox_id, team_id, webhook: given, env };
}

/** An answer that is no success, as the error it is; fields are named as in a claim. */
export function refusal(answer: Answer): CatalogueError {
  if (answer.outcome === 'unreachable') {
    return new CatalogueError('internal_error', `The sandbox's daemon does not answer (${answer.reason}).`);
  }
  const { code = 'internal_error', message, details } = answer.error ?? {};
  const known: ErrorCode = isErrorCode(code) ? code : 'internal_error';
  const { field } = (details ?? {}) as { field?: string };
  const [from, to] = CLAIM_FIELDS.find(([prefix]) => field?.startsWith(prefix)) ?? [];
  if (!field || from === undefined || to === undefined) return new CatalogueError(known, message, details);
  const name = field.replace(from, to);
  return new CatalogueError(known, message?.replace(field, name), { field: name });
}
