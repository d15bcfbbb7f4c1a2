import { checkQueryText } from '../../base/http/query.ts';

/** Ids of processes and events. */
const PARAMETER = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;

/**
 * The path at the daemon, built from the row's text, validated ids and the re-encoded query; null if a parameter is
 * not a valid id. Throws `invalid_request` for a query that is not UTF-8: encoded anew, it would be another one.
 */
export function daemonPath(path: string, parameters: Record<string, string>, url: string): string | null {
  const segments = path.split('/').map((segment) => {
    if (!segment.startsWith(':')) return segment;
    const value = parameters[segment.slice(1)] ?? '';
    return PARAMETER.test(value) ? value : null;
  });
  if (segments.includes(null)) return null;
  checkQueryText(url);
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  const encoded = new URLSearchParams(query).toString();
  return `${segments.join('/')}${encoded === '' ? '' : `?${encoded}`}`;
}
