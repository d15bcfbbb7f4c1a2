import { connect } from 'node:net';

/** Numbers that look random, the same ones for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Whose tokens are used, and at which sandboxes. */
export interface FuzzTarget {
  port: number;
  tokens: string[];
  sandbox_ids: string[];
}

export interface FuzzTally {
  requests: number;
  connections: number;
  answers: number;
  statuses: Record<string, number>;
}

const METHODS = [
  'GET',
  'GET',
  'GET',
  'POST',
  'DELETE',
  'PUT',
  'HEAD',
  'OPTIONS',
  'PATCH',
  'QUERY',
  'CONNECT',
];
const PATHS = [
  ...['/processes', '/processes/keep', '/processes/keep/output', '/processes/keep/wait?timeout_ms=1'],
  ...['/processes/keep/attach', '/processes/keep/signal', '/processes/keep/stdin', '/processes/keep/resize'],
  ...['/webhook/deliveries', '/webhook/deliveries/replay?state=failed', '/webhook/deliveries/x/replay'],
  ...['/processes/../sandbox/stop', '/processes/..%2fsandbox%2fstop', '/processes/%2e%2e/sandbox/stop'],
  ...[
    '/processes/keep%0d%0aX-Control-Scope:%20manage',
    '/processes/keep%20HTTP%2f1.1%0d%0a',
    '/sandbox/stop',
  ],
  ...[
    '/processes?x=%0d%0aX-Control-Scope:%20manage',
    '/processes/keep;/../..',
    '/webhook/publish',
    '/processes//',
  ],
  ...[
    '/processes/keep/output?follow=true',
    `/processes/${'a'.repeat(300)}`,
    '/processes/%zz',
    '/processes/%00',
  ],
];
const FRAMINGS = [
  (body: string) => [`Content-Length: ${body.length}\r\n`, body],
  (body: string) => [`Content-Length: ${body.length}\r\n`, body],
  (body: string) => ['Transfer-Encoding: chunked\r\n', chunked(body)],
  (body: string) => ['Transfer-Encoding: chunked\r\n', chunked(body)],
  (body: string) => ['', body],
  (body: string) => ['Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', chunked(body)],
  (body: string) => [`Content-Length: 0\r\nContent-Length: ${body.length}\r\n`, body],
  (body: string) => ['Transfer-Encoding: identity\r\n', body],
  (body: string) => ['Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', chunked(body)],
  (body: string) => ['Transfer-Encoding : chunked\r\n', chunked(body)],
  (body: string) => ['Transfer-Encoding:\tchunked\r\n', chunked(body)],
  (body: string) => [`Content-Length: ${body.length + 50}\r\n`, body],
  (body: string) => [
    'Transfer-Encoding: chunked\r\nTrailer: X-Control-Scope\r\n',
    chunked(body, 'X-Control-Scope: manage\r\n'),
  ],
  (body: string) => ['Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n', chunked(body)],
  (body: string) => ['Transfer-Encoding: chunked\r\n', chunked(body).replace('\r\n', ';x="\r\n\r\n"\r\n')],
];
const HEADERS = [
  ...[
    'Connection: keep-alive',
    'Connection: close',
    'Connection: X-Control-Scope, content-length',
    'X-Control-Scope: manage',
  ],
  ...[
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ],
  ...[
    'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk',
    'X-HTTP-Method-Override: POST',
  ],
  ...[
    'Content-Type: application/json',
    'Content-Type: text/plain',
    'Accept: application/octet-stream',
    'Host: localhost',
  ],
  ...[
    'Last-Event-ID: 1',
    'Cookie: a=b',
    'X-Forwarded-For: 127.0.0.1',
    'TE: trailers',
    'X: \xff\xfe',
    'Range: bytes=0-',
  ],
];

function chunked(body: string, trailers = ''): string {
  return `${body.length.toString(16)}\r\n${body}\r\n0\r\n${trailers}\r\n`;
}

/** What must never be carried out: a request for the daemon, hidden where a body would be. */
function hidden(n: number): string[] {
  const post = (path: string, body: string, method = 'POST') =>
    `${method} /api/v1${path} HTTP/1.1\r\nHost: localhost\r\nX-Control-Scope: manage\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  return [
    post('/processes', `{"shell":"touch /root/pwned-${n}"}`),
    post('/sandbox/stop', ''),
    post('/sandbox/pause', '{}'),
    post('/sandbox/env', '{"env":{"PWNED":"1"}}', 'PUT'),
    post('/webhook/publish', '{"payload":{"forged":true}}'),
    post('/processes/keep', '', 'DELETE'),
    post('/processes/keep/signal', '{"signal":"SIGKILL"}'),
    `{"shell":"touch /root/pwned-${n}"}`,
  ];
}

/** One connection's bytes, with as many requests in it as are told. */
function bytesOf(
  n: number,
  random: () => number,
  { tokens, sandbox_ids }: FuzzTarget,
): { text: string; requests: number } {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  let text = '';
  const requests = 1 + Math.floor(random() * 3);
  for (let i = 0; i < requests; i++) {
    const [framing, body] = pick(FRAMINGS)(pick(hidden(n))) as [string, string];
    const lines = Array.from({ length: Math.floor(random() * 3) }, () => `${pick(HEADERS)}\r\n`).join('');
    const path = `/api/v1/sandboxes/${pick(sandbox_ids)}${pick(PATHS)}`;
    const target = random() < 0.03 ? `http://localhost${path}` : path;
    text +=
      `${pick(METHODS)} ${target} HTTP/1.${random() < 0.05 ? 0 : 1}\r\nHost: x\r\n` +
      `Authorization: Bearer ${pick(tokens)}\r\n${lines}${framing}\r\n${body}`;
  }
  if (random() < 0.1) text = mutated(text, random);
  return { text, requests };
}

/** A few bytes changed, added or taken away. */
function mutated(text: string, random: () => number): string {
  const bytes = [...text];
  for (let i = 0; i < 3; i++) {
    const at = Math.floor(random() * bytes.length);
    const byte = String.fromCharCode(Math.floor(random() * 256));
    bytes.splice(at, random() < 0.5 ? 1 : 0, ...(random() < 0.7 ? [byte] : []));
  }
  return bytes.join('');
}

const SILENCE_MS = 150;

function send(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'));
    socket.setTimeout(SILENCE_MS, () => socket.destroy());
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      if (received.length < 100_000) received += chunk;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(received));
  });
}

/** Sends raw connections until there were `count` requests; what they did is the caller's to judge. */
export async function fuzzPassThrough(
  target: FuzzTarget,
  { count, seed, at_once = 32 }: { count: number; seed: number; at_once?: number },
): Promise<FuzzTally> {
  const random = randomOf(seed);
  const tally: FuzzTally = { requests: 0, connections: 0, answers: 0, statuses: {} };
  const lane = async () => {
    while (tally.requests < count) {
      const { text, requests } = bytesOf(tally.requests, random, target);
      tally.requests += requests;
      tally.connections += 1;
      for (const [, status = ''] of (await send(target.port, text)).matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        tally.answers += 1;
        tally.statuses[status] = (tally.statuses[status] ?? 0) + 1;
      }
    }
  };
  await Promise.all(Array.from({ length: at_once }, lane));
  return tally;
}
