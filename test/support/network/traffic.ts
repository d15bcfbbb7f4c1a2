import { createHash } from 'node:crypto';
import { createSocket, type Socket as Datagrams } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';

/**
 * Traffic for tests of the network: a server, and clients with one job each. What is to be told goes to stdout, one
 * JSON text a line.
 */

const PORT = 7_000;
const CHUNK = Buffer.alloc(256 * 1024, 'traffic ');

const tell = (told: object) => process.stdout.write(`${JSON.stringify(told)}\n`);
const [mode = '', ...args] = process.argv.slice(2);

/** What a client asks of the server, as the first line of a connection. */
interface Job {
  /** `take`: the server reads to the end and answers what it got; `give`: it sends; `echo`: it answers as it is sent. */
  job: 'take' | 'give' | 'echo';
  bytes?: number;
}

function pump(socket: Socket, bytes: number): Promise<number> {
  let sent = 0;
  return new Promise((resolve) => {
    const more = () => {
      while (sent < bytes && !socket.destroyed) {
        const chunk = bytes - sent >= CHUNK.length ? CHUNK : CHUNK.subarray(0, bytes - sent);
        sent += chunk.length;
        if (!socket.write(chunk)) return;
      }
      socket.off('drain', more);
      resolve(sent);
    };
    socket.on('drain', more);
    socket.on('close', () => resolve(sent));
    more();
  });
}

function serve(): void {
  let datagrams = 0;
  let datagram_bytes = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      const end = first.indexOf(10);
      const { job, bytes = Number.MAX_SAFE_INTEGER } = JSON.parse(first.toString('utf8', 0, end)) as Job;
      const rest = first.subarray(end + 1);
      if (job === 'give') void pump(socket, bytes).then(() => socket.end());
      else if (job === 'echo') {
        socket.write(rest);
        socket.on('data', (chunk) => socket.write(chunk));
        socket.on('end', () => socket.end());
      } else take(socket, rest);
    });
  });
  server.listen(PORT, '::', () => tell({ port: PORT }));
  const udp = createSocket({ type: 'udp6', recvBufferSize: 8 * 1024 * 1024 });
  udp.on('message', (message, from) => {
    if (message.toString() === 'report')
      udp.send(JSON.stringify({ datagrams, datagram_bytes }), from.port, from.address);
    else if (message[0] === 63) udp.send(message, from.port, from.address);
    else {
      datagrams += 1;
      datagram_bytes += message.length;
    }
  });
  udp.bind(PORT, '::');
}

function take(socket: Socket, first: Buffer): void {
  const hash = createHash('sha256').update(first);
  let bytes = first.length;
  socket.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  socket.on('end', () => socket.end(JSON.stringify({ bytes, sha256: hash.digest('hex') })));
}

function open(host: string, job: Job): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: PORT, allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.write(`${JSON.stringify(job)}\n`);
      resolve(socket);
    });
  });
}

/** Sends so many bytes, half-closes, and tells what the server says that it got. */
async function put(host: string, bytes: number): Promise<void> {
  const socket = await open(host, { job: 'take' });
  const hash = createHash('sha256');
  for (let left = bytes; left > 0; left -= CHUNK.length)
    hash.update(CHUNK.subarray(0, Math.min(left, CHUNK.length)));
  const answer = new Promise<string>((resolve, reject) => {
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('end', () => resolve(text));
    socket.on('error', reject);
  });
  tell({ is_connected: true });
  await pump(socket, bytes);
  socket.end();
  tell({ sent_sha256: hash.digest('hex'), sent: bytes, ...JSON.parse(await answer) });
}

/** Reads so many bytes and tells their hash. */
async function get(host: string, bytes: number): Promise<void> {
  const socket = await open(host, { job: 'give', bytes });
  const hash = createHash('sha256');
  let received = 0;
  tell({ is_connected: true });
  socket.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    received += chunk.length;
  });
  socket.on('end', () => {
    tell({ received, sha256: hash.digest('hex') });
    socket.end();
  });
}

/** Keeps so many streams busy for so long, and tells what arrived. */
async function flood(host: string, direction: string, streams: number, ms: number): Promise<void> {
  let moved = 0;
  let errors = 0;
  const job: Job = direction === 'out' ? { job: 'take' } : { job: 'give' };
  const sockets = await Promise.all(Array.from({ length: streams }, () => open(host, job)));
  const began = performance.now();
  tell({ is_connected: true });
  for (const socket of sockets) {
    socket.on('error', () => {
      errors += 1;
    });
    if (direction === 'out') void pump(socket, Number.MAX_SAFE_INTEGER);
    else socket.on('data', (chunk) => (moved += chunk.length));
  }
  setTimeout(() => {
    const seconds = (performance.now() - began) / 1_000;
    const unsent = sockets.reduce((sum, { writableLength }) => sum + writableLength, 0);
    if (direction === 'out')
      moved = sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0) - unsent;
    tell({ moved, seconds, errors });
    process.exit();
  }, ms);
}

/** Sends so many datagrams at so many in a millisecond, and tells how many. */
async function datagrams(host: string, count: number, size: number, each_ms: number): Promise<void> {
  const socket = createSocket({
    type: host.includes(':') ? 'udp6' : 'udp4',
    sendBufferSize: 4 * 1024 * 1024,
  });
  const message = Buffer.alloc(size);
  for (let sent = 0; sent < count; ) {
    const batch = Math.min(each_ms, count - sent);
    await Promise.all(Array.from({ length: batch }, () => sendOne(socket, message, host)));
    sent += batch;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  tell({ sent: count, sent_bytes: count * size });
  socket.close();
}

/** Begins so many flows of datagrams, each to a port of its own, and tells when all are on their way. */
async function flows(host: string, count: number): Promise<void> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  const send = (port: number) =>
    new Promise<void>((resolve) => socket.send('.', port, host, () => resolve()));
  for (let port = PORT + 1; port <= PORT + count; port++) await send(port);
  tell({ count });
  socket.close();
}

/** Opens so many connections one after the other, tells how many were refused, and keeps the others. */
async function hold(host: string, count: number): Promise<void> {
  const held: Socket[] = [];
  let refused = 0;
  for (let i = 0; i < count; i++) {
    await open(host, { job: 'echo' }).then(
      (socket) => held.push(socket),
      () => {
        refused += 1;
      },
    );
  }
  tell({ held: held.length, refused });
}

function sendOne(socket: Datagrams, message: Buffer, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.send(message, PORT, host, (error) => (error ? reject(error) : resolve()));
  });
}

/** Connects and asks for an echo of 1 KiB, one after the other, and tells how long each took. */
async function requests(host: string, count: number): Promise<void> {
  const took_ms: number[] = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    const socket = await open(host, { job: 'echo' });
    socket.write(Buffer.alloc(1_024));
    let got = 0;
    await new Promise<void>((resolve) =>
      socket.on('data', (chunk) => {
        got += chunk.length;
        if (got >= 1_024) resolve();
      }),
    );
    took_ms.push(performance.now() - began);
    socket.destroy();
  }
  tell({ took_ms: took_ms.sort((a, b) => a - b) });
}

/** Sends one byte to and fro on one connection, and tells how long each way there and back took. */
async function pings(host: string, count: number): Promise<void> {
  const socket = await open(host, { job: 'echo' });
  socket.setNoDelay();
  const took_ms: number[] = [];
  for (let i = 0; i < count; i++) {
    const began = performance.now();
    const echo = new Promise((resolve) => socket.once('data', resolve));
    socket.write('.');
    await echo;
    took_ms.push(performance.now() - began);
  }
  tell({ took_ms: took_ms.sort((a, b) => a - b) });
  socket.destroy();
}

/** Answers every request of HTTP with so many bytes. */
function serveHttp(port: number, bytes: number): void {
  const server = createHttpServer((_request, response) => {
    response.writeHead(200, { 'content-length': bytes, connection: 'close' });
    Readable.from(chunks(bytes)).pipe(response);
  });
  server.listen(port, '::', () => tell({ port }));
}

function* chunks(bytes: number) {
  for (let left = bytes; left > 0; left -= CHUNK.length)
    yield CHUNK.subarray(0, Math.min(left, CHUNK.length));
}

/** Accepts connections on a port, and closes them. */
function listen(port: number): void {
  createServer((socket) => socket.end()).listen(port, '::', () => tell({ port }));
}

/** Tries to connect and tells what came of it. */
function probe(host: string, port: number): void {
  const socket = connect({ host, port, timeout: 3_000 });
  for (const [event, outcome] of [
    ['connect', 'connected'],
    ['timeout', 'timeout'],
  ] as const) {
    socket.on(event, () => {
      tell({ outcome });
      socket.destroy();
    });
  }
  socket.on('error', ({ code }: NodeJS.ErrnoException) => tell({ outcome: code }));
}

/** Answers over TLS. The files hold a key and its certificate. */
function listenWithTls(port: number, key: string, cert: string): void {
  const files = { key: readFileSync(key), cert: readFileSync(cert) };
  createHttpsServer(files, (_request, response) => response.end('over TLS')).listen(port, '::', () =>
    tell({ port }),
  );
}

const [host = '', a, b, c] = args;
switch (mode) {
  case 'serve':
    serve();
    break;
  case 'http':
    serveHttp(Number(host), Number(a));
    break;
  case 'listen':
    listen(Number(host));
    break;
  case 'tls':
    listenWithTls(Number(host), String(a), String(b));
    break;
  case 'put':
    await put(host, Number(a));
    break;
  case 'get':
    await get(host, Number(a));
    break;
  case 'flood':
    await flood(host, String(a), Number(b), Number(c));
    break;
  case 'datagrams':
    await datagrams(host, Number(a), Number(b), Number(c));
    break;
  case 'flows':
    await flows(host, Number(a));
    break;
  case 'hold':
    await hold(host, Number(a));
    break;
  case 'requests':
    await requests(host, Number(a));
    break;
  case 'pings':
    await pings(host, Number(a));
    break;
  case 'probe':
    probe(host, Number(a));
    break;
}
