/** Ports of a sandbox, which the manager reaches through the daemon. Contract section 4, "GET /sandbox/ports/{port}". */

/** The path below `/api/v1` whose last segment is the port. */
export const PORTS_PATH = '/sandbox/ports';

/** The protocol that a connection is upgraded to: from then on it is the connection to the port. */
export const PORT_PROTOCOL = 'sandboxd-port';

/** The TCP port that a text names; null if it is no whole number from 1 to 65 535. */
export function portOf(text: string): number | null {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535 ? Number(text) : null;
}
