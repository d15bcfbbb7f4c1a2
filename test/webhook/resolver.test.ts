import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type Resolve, threadlessResolve } from '../../src/webhook/resolver.ts';
import { scratchFolder } from '../support/scratch.ts';

const TYPE_A = 1;
const FLAGS = { found: 0x8180, no_such_name: 0x8183, failure: 0x8182 };

/** A name server that says of `good.test` an address, of `missing.test` that there is none, of others nothing. */
async function nameServer(): Promise<string> {
  const socket = createSocket('udp4');
  socket.on('message', (message, from) => {
    const labels: string[] = [];
    let end = 12;
    while (message[end]) {
      const length = message[end] ?? 0;
      labels.push(message.subarray(end + 1, end + 1 + length).toString('latin1'));
      end += length + 1;
    }
    const answer = answerTo(message, labels.join('.').toLowerCase(), end);
    if (answer) socket.send(answer, from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => void socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

function answerTo(message: Buffer, name: string, end: number): Buffer | null {
  const is_a = message.readUInt16BE(end + 1) === TYPE_A;
  if (name.startsWith('hangs')) return null;
  const kind = name === 'good.test' ? 'found' : name === 'missing.test' ? 'no_such_name' : 'failure';
  const head = Buffer.alloc(12);
  message.copy(head, 0, 0, 2);
  head.writeUInt16BE(FLAGS[kind], 2);
  head.writeUInt16BE(1, 4);
  const has_answer = kind === 'found' && is_a;
  head.writeUInt16BE(has_answer ? 1 : 0, 6);
  const record = Buffer.from([0xc0, 12, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]);
  return Buffer.concat([head, message.subarray(12, end + 5), ...(has_answer ? [record] : [])]);
}

async function resolving(platform?: Resolve): Promise<Resolve> {
  const hosts = join(scratchFolder(), 'hosts');
  writeFileSync(
    hosts,
    '# names\n127.0.0.1 localhost\n::1 localhost  Loop # both\n192.0.2.9\tgood.example\nx y\n',
  );
  const parts = { hosts, servers: [await nameServer()] };
  return threadlessResolve(platform ? { ...parts, platform } : parts);
}

const refusing: Resolve = async (hostname) => {
  throw Object.assign(new Error(hostname), { code: 'ENOTFOUND' });
};

it('finds what the hosts file says', async () => {
  const resolve = await resolving(refusing);
  expect(await resolve('LOCALHOST')).toEqual([
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]);
  expect(await resolve('loop.')).toEqual([{ address: '::1', family: 6 }]);
  expect(await resolve('good.example')).toEqual([{ address: '192.0.2.9', family: 4 }]);
});

it('asks the name servers, and is not held up by names that hang', async () => {
  const resolve = await resolving(refusing);
  const hanging = Array.from({ length: 60 }, (_, i) => resolve(`hangs-${i}.test`));
  const ended = Promise.allSettled(hanging);
  let is_over = false;
  void ended.then(() => {
    is_over = true;
  });
  expect(await resolve('good.test')).toEqual([{ address: '192.0.2.7', family: 4 }]);
  expect(is_over).toBe(false);
  for (const each of await ended) {
    expect(each).toMatchObject({ status: 'rejected', reason: { code: 'EAI_AGAIN' } });
  }
});

it('asks the platform for what the name servers do not know, a few at a time', async () => {
  let asked = 0;
  let most = 0;
  const resolve = await resolving(async () => {
    most = Math.max(most, ++asked);
    await new Promise((done) => setTimeout(done, 20));
    asked -= 1;
    return [{ address: '192.0.2.8', family: 4 }];
  });
  const found = await Promise.all(Array.from({ length: 10 }, () => resolve('missing.test')));
  expect(found).toEqual(Array(10).fill([{ address: '192.0.2.8', family: 4 }]));
  expect(most).toBeLessThanOrEqual(3);
});

it('tells a failure of the name servers as one of names', async () => {
  const resolve = await resolving();
  await expect(resolve('broken.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' });
});
