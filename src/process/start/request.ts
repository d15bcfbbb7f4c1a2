import type { ProcessRequest } from '../../contract/schema/process-request.ts';

/** A text that is equal for equal requests: the body without `process_id`, with its keys sorted. */
export function requestFingerprint(request: ProcessRequest): string {
  const { process_id: _, ...rest } = request;
  return JSON.stringify(sorted(rest));
}

/** The argument vector that is run and shown: `shell` becomes `/bin/sh -c TEXT`. */
export function commandOf(request: ProcessRequest): [string, ...string[]] {
  if (request.command) return request.command as [string, ...string[]];
  return ['/bin/sh', '-c', request.shell ?? ''];
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, entry]) => [key, sorted(entry)]);
}
