import { invalidField } from '../../../contract/errors.ts';
import { portOf } from '../../../contract/ports.ts';

/** The slashes of a request's path before that of the server: `/api/v1/sandboxes/{id}/ports/{port}` has six. */
const PREFIX_SEGMENTS = 7;

/** The port that a path names. Throws `invalid_request`. */
export function portIn(text: string): number {
  const port = portOf(text);
  if (port === null) throw invalidField('port', 'must be a whole number from 1 to 65535');
  return port;
}

/**
 * The target of a request at the server, character by character as the caller sent it: what follows the port. `url` is
 * the request's own target, which has been routed to a port.
 */
export function serverTarget(url: string): string {
  const [, path = '', query = ''] = /^(?:https?:\/\/[^/?#]*)?([^?#]*)(\?[^#]*)?/i.exec(url) ?? [];
  const segments = path.split('/').slice(PREFIX_SEGMENTS);
  return `/${segments.join('/')}${query}`;
}
