import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { serve } from './program.ts';

export type BareFilesVerbs = {
  /** Serves a file to each connection of one port, and stores what those of another send in a file each. */
  listen: (files: { source: string; target: string }) => Promise<{ down_port: number; up_port: number }>;
};

let stored = 0;

/** Answers once the file is synced, as an upload does. */
async function store(socket: Socket, target: string): Promise<void> {
  const path = `${target}-${stored++ % 8}`;
  await pipeline(socket, createWriteStream(path), { end: true });
  await using file = await open(path, 'r');
  await file.sync();
  socket.end('HTTP/1.1 200 OK\r\n\r\n');
}

async function portOf(answer: (socket: Socket) => Promise<void>): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    answer(socket).catch(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

serve<BareFilesVerbs>({
  listen: async ({ source, target }) => ({
    down_port: await portOf((socket) => pipeline(createReadStream(source), socket)),
    up_port: await portOf((socket) => store(socket, target)),
  }),
});
