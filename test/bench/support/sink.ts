import { closeSync, openSync, readSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { ADMIN_PATH, missingPrograms } from '../../support/run-sync.ts';
import { RunningProgram } from '../../support/running-program.ts';
import type { Counted } from './consumer.ts';
import { sleepMs } from './numbers.ts';

const LINE_BYTES = '1700000000.000\n'.length;

/** A consumer that answers at once, keeps nothing and counts. */
export interface Sink {
  url: string;
  listen(): Promise<void>;
  /** Listens no more and closes every connection. */
  close(): Promise<void>;
  /** What came since the last time this was asked. */
  counted(): Promise<Counted>;
}

/**
 * nginx(8) of Debian's packages, or null where it is not installed. A consumer in Node takes nearly as much CPU as the
 * delivery that it measures: on two cores both would share one.
 */
export async function nginxSink(folder: string): Promise<Sink | null> {
  if (missingPrograms(['nginx']).length > 0) return null;
  const port = await freePort();
  const log = join(folder, 'arrived.log');
  const configuration = join(folder, 'nginx.conf');
  writeFileSync(log, '');
  writeFileSync(configuration, configurationOf(folder, port, log));
  let server: RunningProgram | null = null;
  let read_bytes = 0;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    async listen() {
      server = new RunningProgram(['nginx', '-c', configuration, '-e', 'stderr'], {
        env: { PATH: ADMIN_PATH },
        stdout: 'ignore',
        stderr: 'inherit',
      });
      while (!(await accepts(port))) await sleepMs(5);
    },
    async close() {
      await server?.stop('SIGTERM');
    },
    async counted() {
      const bytes = readFrom(log, read_bytes);
      const requests = Math.floor(bytes.length / LINE_BYTES);
      read_bytes += requests * LINE_BYTES;
      const arrivedMs = (n: number) =>
        Number(bytes.toString('latin1', n * LINE_BYTES, (n + 1) * LINE_BYTES)) * 1000;
      return requests === 0
        ? { requests, first_ms: 0, last_ms: 0 }
        : { requests, first_ms: arrivedMs(0), last_ms: arrivedMs(requests - 1) };
    },
  };
}

/** One process, which leaves with this one's signal, and a line for each request. */
function configurationOf(folder: string, port: number, log: string): string {
  const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `daemon off; master_process off; pid ${join(folder, 'nginx.pid')};
events { worker_connections 256; }
http {
  log_format arrived '$msec';
  access_log ${log} arrived buffer=64k flush=10ms;
  ${scratch.map((name) => `${name}_temp_path ${join(folder, name)};`).join(' ')}
  keepalive_requests 1000000000; keepalive_timeout 600; client_body_buffer_size 64k;
  server { listen 127.0.0.1:${port}; location / { return 204; } }
}
`;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function readFrom(path: string, position: number): Buffer {
  const file = openSync(path, 'r');
  const parts: Buffer[] = [];
  for (let at = position; ; ) {
    const part = Buffer.alloc(1024 * 1024);
    const length = readSync(file, part, 0, part.length, at);
    if (length === 0) break;
    parts.push(part.subarray(0, length));
    at += length;
  }
  closeSync(file);
  return Buffer.concat(parts);
}
