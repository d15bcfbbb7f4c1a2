import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Who is told of the connections that carry sandboxes' webhooks to their receivers. Source: contract section 7, "Transfer". */
export interface Carrier {
  /**
   * The stream to use instead of a connection to the receiver of a sandbox's webhooks: what passes is counted, and may be held
   * back. The connection itself is not used any more. Rejects where it must not be used.
   */
  carry(sandbox_id: string, connection: Socket): Promise<Duplex>;
}
