import { request } from 'node:http';
import { createServer } from 'node:net';
import { findSocketHolder, readProgramName } from '../../base/linux/procfs.ts';
import { listenersOn } from '../../base/linux/sockets.ts';
import type { Address } from '../api/config.ts';
import { error, type Finding, ok } from './finding.ts';

const ANSWER_MS = 2_000;

/** Checks whether the API's port is free, and otherwise names the program that holds it. */
export async function checkPort({ url, socket_path }: Address): Promise<Finding[]> {
  if (socket_path !== null) return [];
  const port = Number(url.port || 80);
  if (await isDaemon(url)) return [ok('port', `${port} is served by a running sandboxd`)];
  const host = url.hostname === 'localhost' ? '127.0.0.1' : url.hostname.replace(/^\[(.*)\]$/, '$1');
  const refused = await listenError(host, port);
  if (refused === null) return [ok('port', `${port} is free`)];
  if (refused !== 'EADDRINUSE') return [error('port', `${port} is not available: ${refused}`)];
  return [error('port', `${port} is held by ${(await holder(port)) ?? 'another program'}`)];
}

async function isDaemon(url: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = request(new URL('/healthz', url), { agent: false, timeout: ANSWER_MS }, (response) => {
      response.destroy();
      resolve(response.statusCode === 200 && response.headers['x-request-id'] !== undefined);
    });
    probe.on('timeout', () => probe.destroy()).on('error', () => resolve(false));
    probe.end();
  });
}

function listenError(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

/** The program that listens on a port; null if this user may not see it. */
async function holder(port: number): Promise<string | null> {
  const pid = findSocketHolder(new Set((await listenersOn(port)).map(({ inode }) => inode)));
  return pid === null ? null : `${readProgramName(pid)} (pid ${pid})`;
}
