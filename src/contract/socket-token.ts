/**
 * How a page in a browser, which can set no header of a WebSocket, gives its token to the manager: as a subprotocol of
 * the handshake. A URL would be kept in logs and histories. Contract section 7, "Bearer tokens".
 */

/** The subprotocol that is offered beside the token's and chosen in the answer. */
export const SOCKET_PROTOCOL = 'sandboxd.v1';

const TOKEN_PREFIX = 'sandboxd.bearer.';

/** The subprotocols that a browser offers to prove its caller. */
export function socketProtocols(token: string): [chosen: string, proof: string] {
  const bytes = String.fromCharCode(...new TextEncoder().encode(token));
  const base64url = btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
  return [SOCKET_PROTOCOL, TOKEN_PREFIX + base64url];
}

/** The token among the subprotocols of a handshake; null if there is none. */
export function tokenOfProtocols(header: string | undefined): string | null {
  const offered = protocolsOf(header).find((each) => each.startsWith(TOKEN_PREFIX));
  if (offered === undefined) return null;
  const base64 = offered.slice(TOKEN_PREFIX.length).replaceAll('-', '+').replaceAll('_', '/');
  if (!/^[A-Za-z0-9+/]+$/.test(base64) || base64.length % 4 === 1) return null;
  const token = atob(base64);
  return /^[\x21-\x7e]+$/.test(token) ? token : null;
}

/** Whether a handshake offers `SOCKET_PROTOCOL`, which its answer then has to choose. */
export function offersSocketProtocol(header: string | undefined): boolean {
  return protocolsOf(header).includes(SOCKET_PROTOCOL);
}

function protocolsOf(header = ''): string[] {
  return header.split(',').map((each) => each.trim());
}
