import { once } from 'node:events';
import { createServer as createHttpServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LocalAuthority } from '../../../src/manager/quotas/local-authority.ts';
import { TransferPace } from '../../../src/manager/transfer/transfer-pace.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const RATE = 1024 * 1024;

function scene() {
  const clock = new ManualClock();
  const authority = new LocalAuthority(clock);
  const pace = new TransferPace({ bytes_per_second: RATE, authority, is_fail_open: false, clock });
  return { clock, pace };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function connected(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Lets a second pass at a time until something is so. */
async function whilePassing(clock: ManualClock, isSo: () => boolean): Promise<number> {
  let seconds = 0;
  await eventually(async () => {
    if (!isSo()) {
      seconds += 1;
      await clock.advance(1_000);
    }
    expect(isSo()).toBe(true);
  });
  return seconds;
}

describe('a connection of a team that has a rate', () => {
  it('passes an answer no faster than that, whole, while another team has its own', async () => {
    const { clock, pace } = scene();
    const body = Buffer.alloc(5 * RATE, 'x');
    const port = await listening(createHttpServer((_request, response) => response.end(body)));
    const download = async (team_id: string) => {
      const stream = pace.over(await connected(port), team_id, 1024);
      const outgoing = httpRequest({ createConnection: () => stream, path: '/' }).end();
      const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
      const state = { bytes: 0, is_done: false };
      answer.on('data', ({ length }: Buffer) => {
        state.bytes += length;
      });
      answer.on('end', () => {
        state.is_done = true;
      });
      return state;
    };
    const slow = await download('team_1');
    await eventually(() => expect(slow.bytes).toBeGreaterThan(RATE / 2));
    expect(slow.bytes).toBeLessThanOrEqual(RATE + 1024);
    const other = await download('team_2');
    await eventually(() => expect(other.bytes).toBeGreaterThan(RATE / 2));
    await whilePassing(clock, () => slow.is_done && other.is_done);
    expect(clock.monotonicMs()).toBeGreaterThanOrEqual(4_000);
    expect([slow.bytes, other.bytes]).toEqual([body.length, body.length]);
  });

  it('takes a body no faster, and the answer that comes when the other side has closed still arrives', async () => {
    const { clock, pace } = scene();
    const size = 3 * RATE;
    const got: number[] = [];
    const server = createHttpServer(async (request, response) => {
      request.on('data', ({ length }: Buffer) => got.push(length));
      await once(request, 'end');
      response.writeHead(200, { connection: 'close' }).end('taken');
    });
    const port = await listening(server);
    const stream = pace.over(await connected(port), 'team_1', 1024);
    const outgoing = httpRequest({ createConnection: () => stream, method: 'PUT', path: '/' });
    const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>;
    outgoing.end(Buffer.alloc(size));
    const sum = () => got.reduce((all, each) => all + each, 0);
    await eventually(() => expect(sum()).toBeGreaterThan(RATE / 2));
    expect(sum()).toBeLessThanOrEqual(RATE + 1024);
    await whilePassing(clock, () => sum() === size);
    const done = answered.then(([answer]) => buffer(answer));
    let text = '';
    void done.then((bytes) => {
      text = String(bytes);
    });
    await whilePassing(clock, () => text === 'taken');
  });

  it('ends one direction without the other, and breaks where either side breaks', async () => {
    const { clock, pace } = scene();
    const sockets: Socket[] = [];
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.on('data', () => {});
      socket.once('end', () => socket.end('the last word'));
    });
    const port = await listening(server);
    const stream = pace.over(await connected(port), 'team_1', 0);
    const read: Buffer[] = [];
    stream.on('data', (bytes: Buffer) => read.push(bytes));
    stream.end('said');
    await whilePassing(clock, () => String(Buffer.concat(read)) === 'the last word');
    const broken = pace.over(await connected(port), 'team_1', 0);
    const closed = new Promise((resolve) => broken.on('error', () => {}).once('close', resolve));
    await eventually(() => expect(sockets).toHaveLength(2));
    sockets[1]?.resetAndDestroy();
    broken.resume();
    await closed;
    const left = await connected(port);
    pace.over(left, 'team_1', 0).destroy();
    await once(left, 'close');
  });

  it('carries the webhook that began first before those that began later, to its end', async () => {
    const { clock, pace } = scene();
    const received = Array.from({ length: 6 }, () => 0);
    const server = createHttpServer((request, response) => {
      const number = Number(request.url?.slice(1));
      request.on('data', ({ length }: Buffer) => {
        received[number] = (received[number] ?? 0) + length;
      });
      request.once('end', () => response.writeHead(204).end());
    });
    const port = await listening(server);
    const answered: number[][] = [];
    for (const number of received.keys()) {
      const stream = pace.overWebhooks(await connected(port), 'team_1');
      await clock.advance(1);
      const path = `/${number}`;
      const outgoing = httpRequest({ createConnection: () => stream, method: 'POST', path });
      outgoing.once('response', (answer) => {
        answered.push([...received]);
        answer.resume();
      });
      outgoing.end(Buffer.alloc(RATE));
    }
    await whilePassing(clock, () => answered.length === 6);
    // Side by side they would all be nearly complete.
    expect(answered[0]?.[5]).toBeLessThan(RATE / 2);
    expect(received).toEqual(received.map(() => RATE));
  });

  it('is not made for a caller that goes while it waits', async () => {
    const { clock, pace } = scene();
    const caller = new Socket();
    const burst = pace.first('team_1', RATE, caller);
    await clock.advance(0);
    expect(await burst).toBe(true);
    const waiting = pace.first('team_1', RATE, caller);
    caller.destroy();
    expect(await waiting).toBe(false);
    expect(await pace.first('team_1', 1, caller)).toBe(false);
  });
});

describe('what a team owes', () => {
  it('holds the team until its rate has gained it, and nobody else', async () => {
    const { clock, pace } = scene();
    let paid = 0;
    pace.onPaid(() => {
      paid += 1;
    });
    pace.owe('team_1', RATE);
    await clock.advance(0);
    expect(pace.owing()).toEqual([]);
    pace.owe('team_1', RATE);
    pace.owe('team_1', RATE);
    await clock.advance(1_900);
    expect(pace.owing()).toEqual(['team_1']);
    const waiting = pace.first('team_2', 1_000, new Socket());
    await clock.advance(0);
    expect(await waiting).toBe(true);
    await clock.advance(200);
    expect([pace.owing(), paid]).toEqual([[], 2]);
  });
});
