import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import type { DaemonAddress } from '../api/config.ts';
import { listenersOn } from '../api/port-owner.ts';
import { error, type Finding, ok } from './finding.ts';

const ANSWER_MS = 2_000;

/** Whether the API's port is free, or who has it. */
export async function checkPort({ url, socket_path }: DaemonAddress): Promise<Finding[]> {
  if (socket_path !== null) return [];
  const port = Number(url.port || 80);
  if (await isDaemon(url)) return [ok('port', `${port} is served by a sandboxd that runs`)];
  const host = url.hostname === 'localhost' ? '127.0.0.1' : url.hostname.replace(/^\[(.*)\]$/, '$1');
  const refused = await refusal(host, port);
  if (refused === null) return [ok('port', `${port} is free`)];
  if (refused !== 'EADDRINUSE') return [error('port', `${port} cannot be listened on: ${refused}`)];
  return [error('port', `${port} is held by ${holder(port) ?? 'another program'}`)];
}

async function isDaemon(url: URL): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = request(new URL('/healthz', url), { agent: false, timeout: ANSWER_MS }, (response) => {
      response.destroy();
      resolve(response.statusCode === 200 && response.headers['x-request-id'] !== undefined);
    });
    asked.on('timeout', () => asked.destroy()).on('error', () => resolve(false));
    asked.end();
  });
}

function refusal(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', ({ code, message }: NodeJS.ErrnoException) => resolve(code ?? message));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

/** The program that listens on a port, as far as this user may see it. */
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
    return []; // another user's, or gone meanwhile
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
