import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { BareFilesVerbs } from '../support/bare-files.ts';
import type { Bench } from '../support/bench.ts';
import type { Call, FileClientVerbs, Told } from '../support/file-client.ts';
import type { Program } from '../support/program.ts';

/** Where a server of file routes is, as the client connects to it and as requests name it. */
export interface FileServer {
  to: Call['to'];
  headers: Record<string, string>;
  /** What precedes `/files`. */
  prefix: string;
}

/** What one side of a comparison does. */
export interface FileSide {
  down(): Promise<Told>;
  /** To a place of its own unless one is given. */
  up(bytes: number, path?: string): Promise<Told>;
}

/** The file routes of a program that listens at a URL. */
export function serverAt(url: string, headers: Record<string, string>, prefix = '/api/v1'): FileServer {
  const { hostname, port } = new URL(url);
  return { to: { host: hostname, port: Number(port) }, headers, prefix };
}

let uploads = 0;

/** Downloads of a file, and uploads beside it, by the file routes. */
export function routedFiles(client: Program<FileClientVerbs>, server: FileServer, file: string): FileSide {
  const { to, headers, prefix } = server;
  const call = (method: string, path: string, more: Record<string, string>): Call => {
    const all = Object.entries({ host: 'localhost', connection: 'close', ...headers, ...more });
    const lines = all.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const target = `${prefix}/files?path=${encodeURIComponent(path)}`;
    return { to, head: `${method} ${target} HTTP/1.1\r\n${lines}\r\n` };
  };
  return {
    down: async () => checked(await client.ask('take', call('GET', file, {}))),
    up: async (bytes, path = `${file}-up-${uploads++ % 8}`) => {
      const put = call('PUT', path, { 'content-length': String(bytes) });
      return checked(await client.ask('send', { ...put, bytes, half_close: false }));
    },
  };
}

/** The same by a pipeline between a socket and a file. */
export async function bareFiles(
  bench: Bench,
  client: Program<FileClientVerbs>,
  source: string,
): Promise<FileSide> {
  const bare = await bench.program<BareFilesVerbs>(new URL('../support/bare-files.ts', import.meta.url));
  const target = join(bench.folder(), 'bare');
  const { down_port, up_port } = await bare.ask('listen', { source, target });
  const call = (port: number): Call => ({ to: { host: '127.0.0.1', port }, head: '' });
  return {
    down: () => client.ask('take', call(down_port)),
    up: (bytes) => client.ask('send', { ...call(up_port), bytes, half_close: true }),
  };
}

/** A process that sends and receives for the benchmark. */
export function fileClient(bench: Bench): Promise<Program<FileClientVerbs>> {
  return bench.program<FileClientVerbs>(new URL('../support/file-client.ts', import.meta.url));
}

/** Until the disk has nothing to write: what one turn leaves must not be charged to the next. */
export async function settled(): Promise<void> {
  await promisify(execFile)('sync');
}

function checked(told: Told): Told {
  if (!/^HTTP\/1\.1 20[01]/.test(told.status)) throw new Error(`the answer was ${told.status}`);
  return told;
}
