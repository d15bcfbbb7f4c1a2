import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { makeDirectResolve } from '../../src/webhook/direct-resolver.ts';
import { TYPE_A, TYPE_AAAA, TYPE_CNAME } from '../../src/webhook/dns-message.ts';
import type { Resolve } from '../../src/webhook/resolver.ts';
import { eventually } from '../support/eventually.ts';
import { CAN_HANG, hungMount, unlessHangs } from '../support/hung-mount.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { scratchFolder } from '../support/scratch.ts';

const FLAGS = { found: 0x8180, cut: 0x8380, no_such_name: 0x8183, failure: 0x8182 };

type DnsRecord = readonly [type: number, data: Buffer];

const POINTER_TO_QUESTION = [0xc0, 12];
const ALIAS = [...[4, ...Buffer.from('real')], ...[4, ...Buffer.from('test')], 0];

const RECORDS: Record<string, DnsRecord[]> = {
  'good.test': [
    [TYPE_A, Buffer.from([192, 0, 2, 7])],
    [TYPE_AAAA, Buffer.from('20010db8000000000000000000000001', 'hex')],
  ],
  'short.domain.test': [[TYPE_A, Buffer.from([192, 0, 2, 8])]],
  'long.test': [[TYPE_A, Buffer.from([192, 0, 2, 9])]],
};

function answerTo(message: Buffer, is_stream: boolean): Buffer | null {
  const labels: string[] = [];
  let end = 12;
  for (let length = message[end] ?? 0; length > 0; length = message[end] ?? 0) {
    labels.push(message.toString('latin1', end + 1, end + 1 + length));
    end += 1 + length;
  }
  const [name, type] = [labels.join('.'), message.readUInt16BE(end + 1)];
  if (name.startsWith('hangs')) return null;
  const known = (RECORDS[name] ?? []).filter(([each]) => each === type);
  const is_cut = name === 'long.test' && !is_stream;
  const records = known.map(([kind, data]) => record(POINTER_TO_QUESTION, kind, data));
  if (name === 'alias.test' && type === TYPE_A) {
    records.push(record(POINTER_TO_QUESTION, TYPE_CNAME, Buffer.from(ALIAS)));
    records.push(record(ALIAS, TYPE_A, Buffer.from([192, 0, 2, 10])));
    records.push(record([5, ...Buffer.from('other'), 0], TYPE_A, Buffer.from([192, 0, 2, 99])));
  }
  const head = Buffer.alloc(12);
  message.copy(head, 0, 0, 2);
  const is_known = name in RECORDS || name === 'alias.test';
  const flags = is_cut ? FLAGS.cut : is_known ? FLAGS.found : FLAGS.no_such_name;
  head.writeUInt16BE(name.startsWith('fails') ? FLAGS.failure : flags, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(is_cut ? 0 : records.length, 6);
  return Buffer.concat([head, message.subarray(12, end + 5), ...(is_cut ? [] : records)]);
}

function record(name: number[], type: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([...name, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]), data]);
}

/** A name server on UDP and TCP; returns it as resolv.conf names it. */
async function nameServer(): Promise<string> {
  const stream = createServer((socket) => {
    socket.on('data', (data) => {
      const answer = answerTo(data.subarray(2), true) as Buffer;
      socket.end(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 255]), answer]));
    });
  }).listen(0, '127.0.0.1');
  await once(stream, 'listening');
  const { port } = stream.address() as AddressInfo;
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => {
    // Neither another id nor noise is taken for the answer.
    socket.send(
      Buffer.concat([Buffer.from([message[0] as number, (message[1] as number) ^ 1]), message.subarray(2)]),
      from.port,
      from.address,
    );
    socket.send(Buffer.from('noise'), from.port, from.address);
    const answer = answerTo(message, false);
    if (answer) socket.send(answer, from.port, from.address);
  });
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => {
    socket.close();
    stream.close();
  });
  return `[127.0.0.1]:${port}`;
}

async function resolving(more = '', clock = systemClock): Promise<Resolve> {
  const folder = scratchFolder();
  const files = { hosts: join(folder, 'hosts'), settings: join(folder, 'resolv.conf') };
  writeFileSync(files.hosts, '192.0.2.1 named # a comment\n');
  writeFileSync(
    files.settings,
    `# c\nnameserver ${await nameServer()}\nsearch domain.test other.test\n${more}`,
  );
  return makeDirectResolve(clock, files);
}

const four = (address: string) => ({ address, family: 4 });

test('names come from the hosts file, of loopback, or from name servers with search domains', async () => {
  const resolve = await resolving();
  expect(await resolve('NAMED')).toEqual([four('192.0.2.1')]);
  for (const name of ['localhost', 'a.localhost.'])
    expect(await resolve(name)).toEqual([four('127.0.0.1'), { address: '::1', family: 6 }]);
  expect(await resolve('good.test')).toEqual([
    four('192.0.2.7'),
    { address: '2001:db8:0:0:0:0:0:1', family: 6 },
  ]);
  expect(await resolve('short')).toEqual([four('192.0.2.8')]);
  expect(await resolve('alias.test.')).toEqual([four('192.0.2.10')]);
  expect(await resolve('long.test')).toEqual([four('192.0.2.9')]);
});

test('what nobody knows is ENOTFOUND, and what could not be found out EAI_AGAIN', async () => {
  const resolve = await resolving('options ndots:2 timeout:1\n');
  for (const name of ['missing.test', 'short.', 'a..b', 'x'.repeat(64), 'bad name'])
    await expect(resolve(name)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  await expect(resolve('fails.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' });
});

test('a name server to which there is no route ends nothing but its question', async () => {
  const folder = scratchFolder();
  const files = { hosts: join(folder, 'hosts'), settings: join(folder, 'resolv.conf') };
  writeFileSync(files.hosts, '');
  // Refused at once, as without a route: the socket may not send to everybody.
  writeFileSync(files.settings, 'nameserver 255.255.255.255\n');
  const resolve = makeDirectResolve(systemClock, files);
  await expect(resolve('good.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' });
});

test('a name server that does not answer is given up, beside names that are answered', async () => {
  const clock = new ManualClock();
  const resolve = await resolving('', clock);
  const hanging = resolve('hangs.test.').catch(({ code }) => code);
  expect(await resolve('good.test.')).toHaveLength(2);
  await clock.advance(1_500);
  await clock.advance(1_500);
  expect(await hanging).toBe('EAI_AGAIN');
});

test.runIf(CAN_HANG)(`files on a mount that hangs hold up no thread${unlessHangs}`, async () => {
  const mount = await hungMount({ hosts: { text: '', mode: 0o644 } });
  await mount.hang();
  const clock = new ManualClock();
  const path = join(mount.path, 'hosts');
  const resolve = makeDirectResolve(clock, { hosts: path, settings: path });
  const waiting = resolve('good.test').catch(({ code }) => code);
  await eventually(async () => expect(await mount.waiting()).toBe(1));
  await clock.advance(2_000);
  expect(await waiting).toBe('EAI_AGAIN');
});
