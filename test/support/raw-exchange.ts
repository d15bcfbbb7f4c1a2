import { connect } from 'node:net';

/** How long a peer may stay silent before its connection is taken to have said everything. */
const SILENCE_MS = 300;

/**
 * Writes bytes on a connection of its own and gives everything that comes back, until it ends or falls silent. `then` is
 * written on the same connection once its condition holds.
 */
export function exchange(
  port: number,
  bytes: string | Buffer,
  silence_ms = SILENCE_MS,
  then: { after: (received: Buffer) => boolean; write: string } | null = null,
): Promise<string> {
  let next = then;
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    // Before the first byte an answer may take long.
    socket.setTimeout(20_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      chunks.push(chunk);
      socket.setTimeout(silence_ms);
      if (!next?.after(Buffer.concat(chunks))) return;
      socket.write(next.write);
      next = null;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')));
  });
}

/** The statuses of all final answers in what a connection gave. */
export function statusesOf(received: string): number[] {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
