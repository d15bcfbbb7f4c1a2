import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { parseCidr } from '../../src/webhook/address.ts';
import { AddressGuard } from '../../src/webhook/address-guard.ts';
import { SharedLookup } from '../../src/webhook/lookup.ts';
import type { AttemptResult } from '../../src/webhook/retry.ts';
import { HttpTransport } from '../../src/webhook/transport.ts';
import { selfSigned } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { type RawRequest, rawServer } from '../support/hostile-server.ts';
import { ManualClock } from '../support/manual-clock.ts';

vi.setConfig({ testTimeout: 30_000 });

/** Long enough for this machine, so that only what must time out does. */
const TIMEOUT_MS = 20_000;

function transport(connections = 4, clock = systemClock): HttpTransport {
  const made = new HttpTransport(clock, connections);
  onTestFinished(() => made.close());
  return made;
}

function request(url: string, body = '{"event_id":"evt_1"}') {
  return { url, headers: { 'Content-Type': 'application/json', 'X-Service-Attempt': '1' }, body };
}

/** One attempt at a server that answers as told. */
async function attempt(
  answer: (request: RawRequest) => void,
  timeout_ms = TIMEOUT_MS,
): Promise<AttemptResult & { server: Awaited<ReturnType<typeof rawServer>> }> {
  const server = await rawServer(answer);
  const result = await transport().send(request(server.url), timeout_ms);
  return { ...result, server };
}

const OK_HEAD = 'HTTP/1.1 200 OK\r\n';

describe('an attempt', () => {
  it('sends the body as it is, and no header but those given and what HTTP needs', async () => {
    const body = '{"payload":{"price": 1.10,"text":"ü🦊"}}';
    const server = await rawServer(({ socket }) => socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`));
    await transport().send(request(`${server.url}?a=b%20c`, body), TIMEOUT_MS);
    const [received] = server.requests;
    expect(Buffer.from(received?.body ?? '', 'latin1').toString()).toBe(body);
    const [first, ...headers] = received?.head.split('\r\n') ?? [];
    expect(first).toBe('POST /hook?a=b%20c HTTP/1.1');
    const names = headers.map((line) => line.split(':')[0]?.toLowerCase()).toSorted();
    expect(names).toEqual(['connection', 'content-length', 'content-type', 'host', 'x-service-attempt']);
  });

  it('gives a body as a text that any database takes', async () => {
    const { response_body } = await attempt(({ socket }) =>
      socket.end(Buffer.from(`${OK_HEAD}Content-Length: 6\r\n\r\nOK\0\xff\0!`, 'latin1')),
    );
    expect(response_body).toBe('OK\uFFFD\uFFFD\uFFFD!');
  });

  it('gives the status, Retry-After and the first 1 KiB of the body', async () => {
    const text = 'x'.repeat(3_000);
    const result = await attempt(({ socket }) =>
      socket.write(`HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 3000\r\n\r\n${text}`),
    );
    expect(result).toMatchObject({
      status: 503,
      error: null,
      retry_after: '7',
      response_body: 'x'.repeat(1024),
    });
  });

  it('tells an answer without a body from one with', async () => {
    const result = await attempt(({ socket }) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'));
    expect(result).toMatchObject({ status: 204, response_body: null });
  });

  it.each([301, 302, 307, 308])('does not follow a redirect (%i)', async (status) => {
    const { server, ...result } = await attempt(({ socket }) =>
      socket.write(`HTTP/1.1 ${status} Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n`),
    );
    expect(result.status).toBe(status);
    expect(server.requests).toHaveLength(1);
  });

  it('passes over an early hint before the answer', async () => {
    const result = await attempt(({ socket }) =>
      socket.write(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK_HEAD}Content-Length: 0\r\n\r\n`),
    );
    expect(result).toMatchObject({ status: 200, error: null });
  });

  it('uses a connection again after a success whose answer had a body', async () => {
    const server = await rawServer(({ socket }) =>
      socket.write(`${OK_HEAD}Content-Length: 11\r\n\r\nhello world`),
    );
    const sender = transport();
    for (let i = 0; i < 20; i++) {
      expect(await sender.send(request(server.url), TIMEOUT_MS)).toMatchObject({ status: 200 });
    }
    expect(server.requests).toHaveLength(20);
    // The library counts a connection as free a moment after the answer has ended.
    expect(server.connections).toBeLessThanOrEqual(2);
  });

  it.each(['end', 'resetAndDestroy'] as const)(
    'is made again on a new connection if a kept one is closed as it is used (%s)',
    async (how) => {
      const server = await rawServer(({ socket, connection }) => {
        if (connection === 1 && server.requests.length > 1) socket[how]();
        else socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`);
      });
      const sender = transport(1);
      const results = [];
      for (let i = 0; i < 3; i++) results.push(await sender.send(request(server.url), TIMEOUT_MS));
      expect(results.map(({ status }) => status)).toEqual([200, 200, 200]);
      const [, first, second] = server.requests;
      expect(server.requests).toHaveLength(4);
      expect([second?.connection, second?.head, second?.body]).toEqual([2, first?.head, first?.body]);
    },
  );

  it('is made again once only, not on a new connection, and not once an answer has begun', async () => {
    const sent = async (answer: (request: RawRequest, count: number) => void, attempts: number) => {
      const server = await rawServer((received) => answer(received, server.requests.length));
      const sender = transport(1);
      let last: AttemptResult | null = null;
      for (let i = 0; i < attempts; i++) last = await sender.send(request(server.url), TIMEOUT_MS);
      expect(last).toMatchObject({ status: null, error: 'reset' });
      return server.requests.length;
    };
    const answered = `${OK_HEAD}Content-Length: 0\r\n\r\n`;
    expect(await sent(({ socket }) => socket.end(), 1)).toBe(1);
    expect(await sent(({ socket }, count) => (count === 1 ? socket.write(answered) : socket.end()), 2)).toBe(
      3,
    );
    const begun = (count: number) => (count === 1 ? answered : 'HTTP/1.1 2');
    expect(
      await sent(({ socket }, count) => {
        socket.write(begun(count));
        if (count > 1) socket.end();
      }, 2),
    ).toBe(2);
  });

  it.each([
    ['interim answers', `${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(3)}${OK_HEAD}`],
    ['60 KiB of headers', `${OK_HEAD}X-Big: ${'x'.repeat(60 * 1024)}\r\n`],
    ['no reason', 'HTTP/1.1 200\r\n'],
    ['an empty line before', `\r\n${OK_HEAD}`],
    ['bytes beyond ASCII', `${OK_HEAD}X: \xfc\r\n`],
  ])('believes an answer with %s', async (_name, head) => {
    const result = await attempt(({ socket }) => socket.write(`${head}Content-Length: 0\r\n\r\n`, 'latin1'));
    expect(result).toMatchObject({ status: 200, error: null });
  });

  it('takes no more connections than it may', async () => {
    const waiting: RawRequest[] = [];
    const server = await rawServer((received) => {
      waiting.push(received);
      if (waiting.length === 3) {
        for (const { socket } of waiting.splice(0)) socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`);
      }
    });
    const sender = transport(3);
    const results = await Promise.all(
      Array.from({ length: 9 }, () => sender.send(request(server.url), TIMEOUT_MS)),
    );
    expect(results.map(({ status }) => status)).toEqual(Array(9).fill(200));
    expect(server.connections).toBe(3);
  });
});

describe('a transport error', () => {
  it('is "connect" where nobody listens', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const result = await transport().send(request(`http://127.0.0.1:${port}/`), TIMEOUT_MS);
    expect(result).toMatchObject({ status: null, error: 'connect' });
    expect(result.error_detail).toBe(`connection refused (ECONNREFUSED 127.0.0.1:${port})`);
  });

  it('is "dns" where the name does not exist', async () => {
    const result = await transport().send(request('http://does-not-exist.invalid/'), TIMEOUT_MS);
    expect(result).toMatchObject({ status: null, error: 'dns' });
    expect(result.error_detail).toMatch(/^[a-z ]+ \((ENOTFOUND|EAI_AGAIN) does-not-exist\.invalid\)$/);
  });

  it.each<[string, (request: RawRequest) => void]>([
    ['reset before the head', ({ socket }) => socket.resetAndDestroy()],
    ['closed before the head', ({ socket }) => socket.end()],
    [
      'reset inside the head',
      ({ socket }) => socket.write(`${OK_HEAD}Content-Le`, () => socket.resetAndDestroy()),
    ],
    ['closed inside the head', ({ socket }) => socket.end(`${OK_HEAD}Content-Length: 5\r\n`)],
  ])('is "reset" where the connection is %s', async (_, answer) => {
    const { server, ...result } = await attempt(answer);
    expect(result).toMatchObject({ status: null, error: 'reset' });
    expect(result.error_detail).toMatch(/^(connection reset|the receiver closed the connection) \(.*\)$/);
    expect(result.error_detail).toContain(new URL(server.url).host);
  });

  it.each<[string, string]>([
    ['garbage', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['a second Content-Length', `${OK_HEAD}Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde`],
    ['headers of a megabyte', `${OK_HEAD}X-Big: ${'a'.repeat(2 ** 20)}\r\n\r\n`],
    ['ten thousand headers', `${OK_HEAD}${'X-Many: 0123456789\r\n'.repeat(10_000)}\r\n`],
    ['an upgrade nobody asked for', 'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'],
    [
      'both a length and chunks',
      `${OK_HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
  ])('ends the attempt where the answer is %s', async (_, answer) => {
    const result = await attempt(({ socket }) => socket.write(answer, 'latin1'));
    expect(result.status).toBeNull();
    expect(['protocol', 'reset']).toContain(result.error);
    expect(result.error_detail).toMatch(
      /^the (answer is not valid HTTP|receiver closed the connection) \(.+\)$/,
    );
  });

  it('or an answer is what an unsolicited 100 comes to: never a hang', async () => {
    const result = await attempt(({ socket }) =>
      socket.write(`HTTP/1.1 100 Continue\r\n\r\n${OK_HEAD}Content-Length: 0\r\n\r\n`),
    );
    expect([result.status, result.error]).toEqual(result.status === null ? [null, 'protocol'] : [200, null]);
  });
});

describe('the deadline', () => {
  it.each<[string, (request: RawRequest) => void]>([
    ['says nothing', () => {}],
    ['stops inside the head', ({ socket }) => socket.write(`${OK_HEAD}Content-`)],
    ['drips its head', ({ socket }) => drip(socket, `${OK_HEAD}X: ${'y'.repeat(10_000)}`)],
    ['hints for ever', ({ socket }) => flood(socket, 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')],
    ['is processing for ever', ({ socket }) => flood(socket, 'HTTP/1.1 102 Processing\r\n\r\n')],
  ])('ends an attempt at a receiver that %s', async (_, answer) => {
    const { server, ...result } = await attempt(answer, 300);
    expect(result).toMatchObject({ status: null, error: 'timeout', response_body: null });
    expect(result.error_detail).toBe(`${new URL(server.url).host} did not answer within 0.3 s`);
    await eventually(() => expect(server.open).toBe(0));
  });

  it('ends an attempt that waits for a connection, and then nothing of it is sent', async () => {
    const server = await rawServer(({ socket, body }) => {
      if (body !== 'first') socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`);
    });
    const sender = transport(1);
    const first = sender.send(request(server.url, 'first'), 600);
    expect(await sender.send(request(server.url, 'second'), 100)).toMatchObject({
      error: 'timeout',
      error_detail: `no connection to ${new URL(server.url).host} within 0.1 s`,
    });
    expect(await first).toMatchObject({ error: 'timeout' });
    expect(await sender.send(request(server.url, 'third'), TIMEOUT_MS)).toMatchObject({ status: 200 });
    expect(server.requests.map(({ body }) => body)).toEqual(['first', 'third']);
  });

  it('holds for the body, too, though the answer counts', async () => {
    const clock = new ManualClock();
    const timers = vi.spyOn(clock, 'after');
    const server = await rawServer(() => {});
    const result = transport(1, clock).send(request(server.url), 15_000);
    await eventually(() => expect(server.requests).toHaveLength(1));
    await clock.advance(14_800);
    server.requests[0]?.socket.write(`${OK_HEAD}Content-Length: 10\r\n\r\nabc`);
    // The timer of the body takes the place of the attempt's.
    await eventually(() => expect(timers.mock.lastCall?.[0]).toBe(200));
    await clock.advance(200);
    expect(await result).toMatchObject({ status: 200, error: null });
  });
});

it('waits for an answer in full after a stop of the whole program', async () => {
  const clock = new ManualClock();
  const server = await rawServer(() => {});
  const result = transport(1, clock).send(request(server.url), 15_000);
  await eventually(() => expect(server.requests).toHaveLength(1));
  await clock.advance(5_000);
  clock.freeze(60_000);
  await clock.advance(14_999);
  server.requests[0]?.socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`);
  expect(await result).toMatchObject({ status: 200, error: null });
});

describe("a success's body", () => {
  it.each<[string, (request: RawRequest) => void]>([
    [
      'drips',
      ({ socket }) => drip(socket, `${OK_HEAD}Content-Length: 100000\r\n\r\n`.concat('x'.repeat(90_000))),
    ],
    ['never comes', ({ socket }) => socket.write(`${OK_HEAD}Content-Length: 10\r\n\r\n`)],
    [
      'never comes after a status that has none',
      ({ socket }) => socket.write('HTTP/1.1 204 No Content\r\nContent-Length: 10\r\n\r\n'),
    ],
    [
      'never comes after a status that has none, in chunks',
      ({ socket }) => socket.write('HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n'),
    ],
    ['never ends', ({ socket }) => flood(socket, 'x'.repeat(1_000), `${OK_HEAD}\r\n`)],
    [
      'has 50 MB',
      ({ socket }) => {
        socket.write(`${OK_HEAD}Content-Length: 50000000\r\n\r\n`);
        socket.write(Buffer.alloc(50_000_000));
      },
    ],
    [
      'is a gzip bomb',
      ({ socket }) => {
        const bomb = gzipSync(Buffer.alloc(20_000_000));
        socket.write(`${OK_HEAD}Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`);
        socket.write(bomb);
      },
    ],
    [
      'is no gzip',
      ({ socket }) => socket.write(`${OK_HEAD}Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc`),
    ],
    [
      'is reset',
      ({ socket }) => socket.write(`${OK_HEAD}Content-Length: 9\r\n\r\nabc`, () => socket.resetAndDestroy()),
    ],
    ['is cut short', ({ socket }) => socket.end(`${OK_HEAD}Content-Length: 9\r\n\r\nabc`)],
    ['is broken chunks', ({ socket }) => socket.write(`${OK_HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n`)],
  ])('does not matter: it %s', async (_, answer) => {
    const { server, ...result } = await attempt(answer);
    expect(result).toMatchObject({ status: expect.toSatisfy((status) => status === 200 || status === 204) });
    expect(result.error).toBeNull();
    expect((result.response_body ?? '').length).toBeLessThanOrEqual(1024);
    expect(server.requests).toHaveLength(1);
  });

  it.each<[string, (request: RawRequest) => void]>([
    ['is endless', ({ socket }) => flood(socket, 'x'.repeat(1_000), `${OK_HEAD}\r\n`)],
    [
      'drips',
      ({ socket }) => drip(socket, `${OK_HEAD}Content-Length: 100000\r\n\r\n`.concat('x'.repeat(90_000))),
    ],
  ])('has its connection closed where it %s', async (_, answer) => {
    const { server } = await attempt(answer);
    await eventually(() => expect(server.open).toBe(0));
  });

  it('holds up no attempt on another connection', async () => {
    const server = await rawServer(({ socket, body }) => {
      if (body === 'slow') socket.write(`${OK_HEAD}Content-Length: 10\r\n\r\n`);
      else socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`);
    });
    const clock = new ManualClock();
    const sender = transport(2, clock);
    // On this clock the slow one never ends.
    const slow = vi.fn();
    void sender.send(request(server.url, 'slow'), TIMEOUT_MS).then(slow);
    for (let i = 0; i < 10; i++) {
      expect(await sender.send(request(server.url, `fast ${i}`), TIMEOUT_MS)).toMatchObject({ status: 200 });
    }
    expect(slow).not.toHaveBeenCalled();
  });
});

describe('TLS', () => {
  it('to a certificate that nobody vouches for is an error, and no request is sent', async () => {
    const server = await tlsServer('DNS:localhost,IP:127.0.0.1');
    const result = await transport().send(request(server.url), TIMEOUT_MS);
    expect(result).toMatchObject({ status: null, error: 'tls' });
    expect(result.error_detail).toMatch(/^self-signed certificate \(DEPTH_ZERO_SELF_SIGNED_CERT .*:\d+\)$/);
    expect(server.received).toEqual([]);
  });

  it('to a plain port is an error, and no request is sent', async () => {
    const server = await rawServer(() => {});
    let bytes = '';
    const plain = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        bytes += chunk.toString('latin1');
        socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
      });
    });
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void plain.close());
    const { port } = plain.address() as AddressInfo;
    const result = await transport().send(request(`https://127.0.0.1:${port}/`), TIMEOUT_MS);
    expect(result).toMatchObject({ status: null, error: 'tls' });
    expect(result.error_detail).toMatch(/^[a-z ]+ \((EPROTO|ERR_SSL\w+) 127\.0\.0\.1:\d+\)$/);
    expect(bytes).not.toContain('evt_1');
    expect(server.requests).toEqual([]);
  });
});

describe('closing', () => {
  it('gives up what is under way', async () => {
    const server = await rawServer(() => {});
    const sender = new HttpTransport(systemClock, 2);
    const result = sender.send(request(server.url), TIMEOUT_MS);
    await eventually(() => expect(server.requests).toHaveLength(1));
    await sender.close();
    expect((await result).status).toBeNull();
    await eventually(() => expect(server.open).toBe(0));
  });

  it('sends nothing more, wherever to', async () => {
    const answer = ({ socket }: RawRequest) => void socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`);
    const [first, other] = [await rawServer(answer), await rawServer(answer)];
    const sender = new HttpTransport(systemClock, 2);
    await sender.send(request(first.url), TIMEOUT_MS);
    await sender.close();
    for (const { url } of [first, other]) {
      expect(await sender.send(request(url), TIMEOUT_MS)).toMatchObject({ status: null });
    }
    expect([first.requests.length, other.requests.length]).toEqual([1, 0]);
  });
});

/** Writes a text a byte at a time, for as long as somebody listens. */
function drip(socket: RawRequest['socket'], text: string): void {
  const head_length = text.indexOf('\r\n\r\n') + 4;
  let at = head_length > 3 ? head_length : 0;
  if (at > 0) socket.write(text.slice(0, at));
  const timer = setInterval(() => socket.write(text[at++] ?? ''), 20);
  socket.once('close', () => clearInterval(timer));
}

/** Writes a text again and again, for as long as somebody listens. */
function flood(socket: RawRequest['socket'], text: string, first = ''): void {
  const write = () => {
    if (socket.destroyed) return;
    if (socket.write(text)) setImmediate(write);
    else socket.once('drain', write);
  };
  if (first) socket.write(first);
  write();
}

async function tlsServer(names: string): Promise<{ url: string; received: string[] }> {
  const received: string[] = [];
  const server = createTlsServer(selfSigned(names), (incoming, response) => {
    received.push(incoming.url ?? '');
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`, received };
}

describe('an address that may not be dialled', () => {
  const guarded = (...allowed: string[]) => {
    const guard = new AddressGuard(allowed.flatMap((range) => parseCidr(range) ?? []));
    const made = new HttpTransport(systemClock, 4, new SharedLookup(guard));
    onTestFinished(() => made.close());
    return made;
  };

  it.each(['127.0.0.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'localhost'])(
    'is never connected to as %s',
    async (host) => {
      const server = await rawServer(({ socket }) => socket.write(`${OK_HEAD}Content-Length: 0\r\n\r\n`));
      const url = `http://${host}:${new URL(server.url).port}/`;
      const result = await guarded().send(request(url), TIMEOUT_MS);
      expect(result).toMatchObject({ status: null, error: 'blocked' });
      expect(server.connections).toBe(0);
      // The same spelling leads there where it is allowed.
      const allowed = await guarded('127.0.0.0/8').send(request(url), TIMEOUT_MS);
      expect(allowed.status).toBe(200);
    },
  );
});
