import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { ask } from './support/ask.ts';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { setLimit } from './support/limits.ts';
import { fault, type Scene } from './support/scene.ts';
import { SlowClients } from './support/slow-clients.ts';
import { timed, until } from './support/until.ts';

const MIB = 1024 * 1024;

const PUBLISH = '/api/v1/webhook/publish';

const nested = (depth: number, open: string, close: string) => open.repeat(depth) + close.repeat(depth);

const REFUSED: [name: string, body: string | Buffer][] = [
  ['nesting 10 000 deep', `{"payload":${nested(10_000, '{"a":', '}').replace(':}', ':1}')}}`],
  ['nesting 100 000 deep', `{"payload":{"a":${nested(100_000, '[', ']')}}}`],
  ['nesting 101 deep', `{"payload":${'{"a":'.repeat(100)}{}${'}'.repeat(100)}}`],
  ['payload twice', '{"payload":{},"payload":{}}'],
  ['payload twice, spelled otherwise', '{"payload":{},"\\u0070ayload":{}}'],
  ['__proto__ instead of payload', '{"__proto__":{"payload":{}}}'],
  ['a mark of the byte order', '\ufeff{"payload":{}}'],
  ['bad UTF-8', Buffer.from('7b227061796c6f6164223a7b2261223a22ff227d7d', 'hex')],
  ['NaN', '{"payload":{"a":NaN}}'],
  ['a comma too many', '{"payload":{},}'],
  ['two values', '{"payload":{}}{"payload":{}}'],
  ['an array', '{"payload":[]}'],
  ['null', '{"payload":null}'],
  ['a string', '{"payload":"x"}'],
  ['a key beside it', '{"payload":{},"event_id":"evt_mine"}'],
  ['nothing', ''],
  ['no object', '[]'],
];

const TAKEN: [name: string, body: string][] = [
  ['nesting 100 deep', `{"payload":${'{"a":'.repeat(99)}{}${'}'.repeat(99)}}`],
  ['toJSON and then', '{"payload":{"toJSON":"x","then":"y","toString":null,"valueOf":1}}'],
  ['numbers no double holds', '{"payload":{"a":1e400,"b":12345678901234567890,"c":1.10,"d":-0}}'],
  ['lone surrogates', '{"payload":{"a":"\\ud800"}}'],
  ['keys twice inside', '{"payload":{"a":1,"a":2}}'],
  ['payload spelled with escapes', '{"payl\\u006Fad":{"a":1.10}}'],
  ['an event of its own inside', '{"payload":{"event_id":"evt_mine","sequence":1}}'],
];

async function stage(scene: Scene, through: string[] = []) {
  const receiver = await HostileReceiver.start(scene, { secret: SECRET });
  const daemon = await Daemon.start(scene, { webhook_url: receiver.url, through });
  return { receiver, daemon, ledger: new Ledger() };
}

describe('http input', () => {
  fault(
    'F34 bodies that are too long are refused early and cost no memory',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      await ledger.publishMany(daemon, 20);
      const before = daemon.residentBytes();
      const text = JSON.stringify({ payload: { filler: 'x'.repeat(MIB) } });
      expect((await daemon.publishText(text)).status).toBe(413);
      const exact = `{"payload":{"filler":"${'x'.repeat(MIB - 25)}"}}`;
      expect(exact.length).toBe(MIB);
      expect((await daemon.publishText(exact)).status).toBe(202);
      expect((await daemon.publishText(`${exact} `)).status).toBe(413);
      const { answer, sent_bytes } = await stream(daemon.port, 200 * MIB);
      expect(answer).toMatch(/^(HTTP\/1\.1 413|$)/);
      expect(sent_bytes).toBeLessThan(20 * MIB);
      expect(daemon.residentBytes() - before).toBeLessThan(32 * MIB);
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F34 lengths that lie and chunks that are none are answered and harm nobody',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      const host = `Host: localhost:${daemon.port}\r\nContent-Type: application/json`;
      const chunked = 'e\r\n{"payload":{}}\r\n0\r\n\r\n';
      const answers = [
        ['a length longer than the body', 'Content-Length: 100', '{"payload":{}}', 408],
        ['a length shorter than the body', 'Content-Length: 5', '{"payload":{}}', 400],
        ['a negative length', 'Content-Length: -5', '{"payload":{}}', 400],
        ['two lengths', 'Content-Length: 14\r\nContent-Length: 15', '{"payload":{}}', 400],
        ['a length and chunks', 'Content-Length: 14\r\nTransfer-Encoding: chunked', chunked, 400],
        ['chunks that are none', 'Transfer-Encoding: chunked', 'zz\r\n{"payload":{}}', 400],
        ['chunks', 'Transfer-Encoding: chunked', chunked, 202],
        ['64 KiB of headers', `X-Big: ${'x'.repeat(64 * 1024)}\r\nContent-Length: 14`, '{"payload":{}}', 431],
      ].map(async ([name, head, body, expected]) => {
        const answer = await raw(
          daemon.port,
          `POST ${PUBLISH} HTTP/1.1\r\n${host}\r\n${head}\r\n\r\n${body}`,
        );
        expect(answer, `${name}`).toContain(`HTTP/1.1 ${expected}`);
      });
      await Promise.all(answers);
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F36 JSON that is hostile or none is refused, and the next publish is normal',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      for (const [name, body] of REFUSED) {
        const answer = await daemon.publishText(body);
        expect(answer.status, `${name}: ${answer.text}`).toBe(400);
        expect((await ledger.publish(daemon))?.status).toBe(202);
      }
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F36 JSON that is strange is delivered as plain data, to the letter',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      for (const [name, body] of TAKEN) {
        const answer = await daemon.publishText(body);
        expect(answer.status, `${name}: ${answer.text}`).toBe(202);
        const receipt = answer.json?.data as { event_id: string } | undefined;
        const request = await until('it is delivered', () => receiver.of(receipt?.event_id ?? '')[0]);
        const payload = body.slice(body.indexOf(':') + 1, -1);
        expect(request.body.toString('utf8').endsWith(`"payload":${payload}}`), name).toBe(true);
      }
      await ledger.publish(daemon);
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F36 other content types, encodings and methods are refused by name',
    { beside: true },
    async (scene) => {
      const { daemon } = await stage(scene);
      const url = `${daemon.url}${PUBLISH}`;
      const body = '{"payload":{}}';
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
      ]) {
        const answer = await ask(url, { method: 'POST', headers: { 'content-type': type }, body });
        expect(answer.status).toBe(415);
      }
      expect(
        (await ask(url, { method: 'PUT', headers: { 'content-type': 'application/json' }, body })).status,
      ).toBe(405);
      for (const headers of [
        { host: 'evil.test' },
        { origin: 'http://evil.test' },
        { 'sec-fetch-site': 'cross-site' },
      ]) {
        const answer = await daemon.publishText(body, {
          headers: headers as unknown as Record<string, string>,
        });
        expect(answer.status).toBe(403);
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      }
    },
  );

  for (const habit of ['headers', 'body'] as const) {
    fault(
      `F39 200 clients that trickle ${habit} cost others nothing and are closed in 15 s`,
      { beside: true, timeout_ms: 90_000 },
      async (scene) => {
        const { receiver, daemon, ledger } = await stage(scene);
        const hogs = new SlowClients(scene, daemon.port, 200, habit);
        await until('they are connected', () => hogs.connected === 200);
        for (let n = 0; n < 5; n++) {
          const { result, took_ms } = await timed(() => ledger.publish(daemon));
          expect(result?.status).toBe(202);
          expect(took_ms).toBeLessThan(10_000);
          await sleep(100);
        }
        const { took_ms } = await timed(() => until('they are closed', () => hogs.closed === 200, 30_000));
        expect(took_ms).toBeLessThan(30_000);
        await expectKept({ receiver, ledger });
      },
    );
  }

  fault(
    'F39 more idle clients than there are connections: the newest complete request still gets in',
    { beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      const hogs = new SlowClients(scene, daemon.port, 400, 'idle');
      await until('they are connected', () => hogs.connected === 400);
      for (let n = 0; n < 5; n++) {
        const { result, took_ms } = await timed(() => ledger.publish(daemon));
        expect(result?.status).toBe(202);
        expect(took_ms).toBeLessThan(10_000);
      }
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F40 64 descriptors and 200 idle clients: daemon and children live, publishing works at once',
    { needs: ['prlimit'], beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene, ['prlimit', '--nofile=64']);
      await daemon.run(['sleep', '60'], { process_id: 'sleeper' });
      const hogs = new SlowClients(scene, daemon.port, 200, 'idle');
      await until('they tried', () => hogs.connected + hogs.closed >= 200);
      const beside = await timed(() =>
        until('a publish works', async () => (await ledger.publish(daemon))?.status === 202),
      );
      expect(beside.took_ms).toBeLessThan(20_000);
      hogs.leave();
      const after = await timed(() =>
        until('a publish works', async () => (await ledger.publish(daemon))?.status === 202),
      );
      expect(after.took_ms).toBeLessThan(10_000);
      const sleeper = await daemon.ask('/api/v1/processes/sleeper');
      expect(sleeper.json?.data).toMatchObject({ state: 'running' });
      await expectKept({ receiver, ledger });
      expect(daemon.exit).toBeNull();
    },
  );

  fault(
    'F40 44 descriptors and 200 idle clients that stay: they get no more than leaves room for others',
    { needs: ['prlimit'], beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene, ['prlimit', '--nofile=44']);
      await ledger.publish(daemon);
      const hogs = new SlowClients(scene, daemon.port, 200, 'idle');
      await until('they tried', () => hogs.connected + hogs.closed >= 200);
      for (let i = 0; i < 10; i++) expect((await ledger.publish(daemon))?.status).toBe(202);
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F40 descriptors that run out while it runs: it lives, and goes on when there are some',
    { needs: ['prlimit'], beside: true },
    async (scene) => {
      const { receiver, daemon, ledger } = await stage(scene);
      await ledger.publishMany(daemon, 3);
      setLimit(daemon, `--nofile=${daemon.openFiles() + 2}:`);
      const hogs = new SlowClients(scene, daemon.port, 50, 'idle');
      await until('they tried', () => hogs.connected + hogs.closed >= 50);
      await ledger.publish(daemon, {}, 1_000);
      hogs.leave();
      setLimit(daemon, '--nofile=4096:');
      await until('a publish works', async () => (await ledger.publish(daemon, {}, 1_000))?.status === 202);
      await expectKept({ receiver, ledger });
      expect(daemon.exit).toBeNull();
    },
  );
});

/** Sends exactly this and returns the beginning of what came back; nothing where the connection just ended. */
function raw(port: number, request: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(request));
    socket.setEncoding('latin1').once('data', (text: string) => {
      resolve(text);
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve(''));
  });
}

/** Streams a body in chunks until the daemon has had enough. */
async function stream(port: number, length: number): Promise<{ answer: string; sent_bytes: number }> {
  const piece = Buffer.alloc(64 * 1024, 'x');
  let answer = '';
  let sent_bytes = 0;
  const socket = net.connect(port, '127.0.0.1');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => {});
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  socket.write(
    `POST ${PUBLISH} HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
  );
  while (sent_bytes < length && !socket.destroyed && answer === '') {
    sent_bytes += piece.length;
    const is_taken = socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    if (!is_taken) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed]);
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.destroy();
  return { answer, sent_bytes };
}
