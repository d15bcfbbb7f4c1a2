import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import type { DaemonAddress } from '../api/config.ts';
import { listenersOn } from '../api/port-owner.ts';
import { error, type Finding, ok } from './finding.ts';

const ANSWER_MS = 2_000;

/** Checks whether the API's port is free, and otherwise names the program that holds it. */
export async function checkPort({ url, socket_path }: DaemonAddress): Promise<Finding[]> {
  if (socket_path !== null) return [];
  const port = Number(url.port || 80);
  if (await isDaemon(url)) return [ok('port', `${port} is served by a running sandboxd`)];
  const host = url.hostname === 'localhost' ? '127.0.0.1' : url.hostname.replace(/^\[(.*)\]$/, '$1');
  const refused = await listenError(host, port);
  if (refused === null) return [ok('port', `${port} is free`)];
  if (refused !== 'EADDRINUSE') return [error('port', `${port} is not available: ${refused}`)];
  return [error('port', `${port} is held by ${holder(port) ?? 'another program'}`)];
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
function holder(port: number): string | null {
  const links = new Set(listenersOn(port).map(({ inode }) => `socket:[${inode}]`));
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    if (filesOf(pid).some((link) => links.has(link)))
      return `${read(`/proc/${pid}/comm`).trim()} (pid ${pid})`;
  }
  return null;
}

function filesOf(pid: string): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
  } catch {
    return []; // of another user, or ended meanwhile
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
