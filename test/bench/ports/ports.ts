import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { systemClock } from '../../../src/base/clock.ts';
import { openDatabase } from '../../../src/manager/database/database.ts';
import { DatabaseClock } from '../../../src/manager/database/database-clock-store.ts';
import { TokenStore } from '../../../src/manager/database/token-store.ts';
import { networkProblem } from '../../../src/network/problem.ts';
import { Client } from '../../support/manager/manager-client.ts';
import { ManagerProgram } from '../../support/manager-program.ts';
import type { Bench, Benchmark } from '../support/bench.ts';
import type { FileClientVerbs } from '../support/file-client.ts';
import { median, nowMs, sleepMs } from '../support/numbers.ts';
import { sized } from '../support/size.ts';
import { comparison } from '../support/table.ts';
import type { BareProxyVerbs } from './bare-proxy.ts';

const MIB = 1024 * 1024;
const DOWNLOAD_BYTES = sized(1024 * MIB, 4 * MIB);
const DOWNLOADS = sized(5, 1);
const ECHO_TURNS = sized(5, 1);
const ECHO_MS = sized(3_000, 200);
const CONNECTIONS = 4;
/** Messages on their way, of each connection. */
const WINDOW = 32;
const MESSAGE = Buffer.alloc(1024, 'x');
const SERVER = fileURLToPath(new URL('./port-server.cjs', import.meta.url));
const PORT = 8000;

/** A server behind a proxy. */
interface Way {
  /** Without a slash at the end. */
  url: string;
  headers: Record<string, string>;
}

interface Ways {
  bare: Way;
  ours: Way;
}

/** The same server on this machine behind a bare proxy, and in a sandbox behind its manager. */
async function waysFor(bench: Bench): Promise<Ways> {
  const server = spawn(process.execPath, [SERVER, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  bench.onEnd(() => server.kill('SIGKILL'));
  const [port] = await once(server.stdout, 'data');
  const proxy = await bench.program<BareProxyVerbs>(new URL('./bare-proxy.ts', import.meta.url));
  const bare = { url: `http://127.0.0.1:${await proxy.ask('listen', Number(port))}`, headers: {} };
  return { bare, ours: await inSandbox(bench) };
}

async function inSandbox(bench: Bench): Promise<Way> {
  const folder = bench.folder();
  const database = `sqlite:${join(folder, 'manager.db')}`;
  const manager = await ManagerProgram.start([
    ...['--listen', '127.0.0.1:0', '--database', database, '--runtime', 'local'],
    ...['--data-dir', join(folder, 'data'), '--secret-key-file', join(folder, 'key')],
    ...['--network', (await networkProblem()) === null ? 'metered' : 'none'],
  ]);
  bench.onEnd(() => manager.end('SIGTERM'));
  const opened = await openDatabase(database);
  const clock = await DatabaseClock.open(opened, systemClock);
  const token = await new TokenStore(opened.db, clock).create('team_bench', ['sandboxes:write'], false);
  await opened.close();
  const owner = new Client(() => manager.url, token);
  const path = `/api/v1/sandboxes/${await owner.claim({ resources: { cpu: 2 } })}`;
  bench.onEnd(() => owner.call('DELETE', path));
  const file = { 'content-type': 'application/octet-stream' };
  await owner.call('PUT', `${path}/files?path=/server.cjs`, readFileSync(SERVER, 'utf8'), file);
  const command = ['/opt/sandboxd/node', '/server.cjs', String(PORT)];
  const { data } = await owner.post(`${path}/processes`, { command, ready: { port: PORT } });
  const ready = await owner.get(`${path}/processes/${data.process_id}/wait?for=ready&timeout_ms=30000`);
  if (ready.status !== 200)
    throw new Error(`the server in the sandbox is not ready: ${ready.error?.message}`);
  return {
    url: `${manager.url}${path}/ports/${PORT}`,
    headers: { authorization: `Bearer ${token}` },
  };
}

/** A long download; bytes that arrive in a second. */
export const portDownload: Benchmark = {
  name: 'port-download',
  async run(bench) {
    const ways = await waysFor(bench);
    const client = await bench.program<FileClientVerbs>(
      new URL('../support/file-client.ts', import.meta.url),
    );
    await compare(bench, ways, {
      name: '1 GiB from a port of a sandbox; bare: a plain Node proxy',
      unit: 'MiB/s',
      turns: DOWNLOADS,
      async figure({ url, headers }) {
        const { hostname, port, pathname, host } = new URL(`${url}/${DOWNLOAD_BYTES}`);
        const lines = Object.entries({ host, connection: 'close', ...headers }).map((pair) =>
          pair.join(': '),
        );
        const head = `GET ${pathname} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;
        const told = await client.ask('take', { to: { host: hostname, port: Number(port) }, head });
        if (told.bytes < DOWNLOAD_BYTES) throw new Error(`${told.bytes} bytes arrived: ${told.status}`);
        return DOWNLOAD_BYTES / MIB / (told.took_ms / 1000);
      },
    });
  },
};

/** Messages of 1 KiB there and back on 4 WebSockets, 32 of each on their way; how many come back in a second. */
export const portEcho: Benchmark = {
  name: 'port-echo',
  async run(bench) {
    await compare(bench, await waysFor(bench), {
      name: 'WebSocket echo at a port of a sandbox; bare: a plain Node proxy',
      unit: 'messages/s',
      turns: ECHO_TURNS,
      figure: echoRate,
    });
  },
};

async function echoRate({ url, headers }: Way): Promise<number> {
  let echoed = 0;
  const sockets = Array.from({ length: CONNECTIONS }, () => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/echo`, { headers, perMessageDeflate: false });
    socket.on('message', () => {
      echoed += 1;
      socket.send(MESSAGE);
    });
    return socket;
  });
  await Promise.all(sockets.map((socket) => once(socket, 'open')));
  const start_ms = nowMs();
  for (const socket of sockets) for (let i = 0; i < WINDOW; i++) socket.send(MESSAGE);
  await sleepMs(ECHO_MS);
  const rate = echoed / ((nowMs() - start_ms) / 1000);
  for (const socket of sockets) socket.terminate();
  return rate;
}

interface Compared {
  name: string;
  unit: string;
  turns: number;
  figure: (way: Way) => Promise<number>;
}

/** Both ways in turn, after one of each to warm up; the ratio is the median of those of the turns. */
async function compare(bench: Bench, ways: Ways, { name, unit, turns, figure }: Compared): Promise<void> {
  const figures: { bare: number; ours: number }[] = [];
  for (let turn = 0; turn <= turns; turn++) {
    const both = { bare: await figure(ways.bare), ours: await figure(ways.ours) };
    if (turn > 0) figures.push(both);
  }
  const [bare, ours] = [median(figures.map((each) => each.bare)), median(figures.map((each) => each.ours))];
  const ratio = median(figures.map((each) => each.ours / each.bare));
  bench.report(comparison({ name, bare, ours, ratio, unit, wanted: 0.7, wants: 'at least' }));
}
