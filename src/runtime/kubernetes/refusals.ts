import { ApiError, invalidField } from '../../contract/errors.ts';
import { ClusterRefusal } from './api/cluster-client.ts';

/** Whether a refusal's message is that of a quota of the namespace. */
export function isQuota(message: string): boolean {
  return /exceeded quota/.test(message);
}

/** What a cluster refuses of a new sandbox, in a line for the caller; anything else as it is. */
export function named(error: unknown): unknown {
  if (!(error instanceof ClusterRefusal)) return error;
  const { message } = error;
  if (isQuota(message)) return new ApiError('capacity_exhausted', `The namespace has no room: ${message}`);
  // What an administrator allows in the namespace (LimitRange).
  const [, bound] = /(m(?:in|ax)imum storage usage per .*)$/i.exec(message) ?? [];
  if (bound) return invalidField('config.resources.disk', `is refused by the cluster: ${bound}`);
  return new ApiError('internal_error', `The cluster refuses the sandbox: ${message}`);
}
