import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Client } from '../../../src/ctl/api/client.ts';
import { findDaemon } from '../../../src/ctl/api/config.ts';
import { StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
let url: string;

beforeAll(async () => {
  url = await daemon.start();
});

afterAll(() => daemon.stop());

function client(path = ''): Client {
  return new Client(findDaemon({ url: url + path }, {}).address, { value: 'a-token' });
}

describe('the client', () => {
  it('resolves with the data of the answer', async () => {
    daemon.on('GET /sandbox', (_, response) => succeed(response, 200, { state: 'running' }));
    expect(await client().call('GET', '/sandbox')).toEqual({ state: 'running' });
    expect(daemon.received.at(-1)?.headers).toMatchObject({ authorization: 'Bearer a-token' });
  });

  it('asks below the path of its URL', async () => {
    await client('/base/')
      .call('GET', '/sandbox', { query: { a: 'x y', b: undefined } })
      .catch(() => {});
    expect(daemon.received.at(-1)?.url).toBe('/base/api/v1/sandbox?a=x+y');
  });

  it('gives a daemon up that stays silent', async () => {
    daemon.on('GET /sandbox', () => {});
    await expect(client().call('GET', '/sandbox', { silence_timeout_ms: 50 })).rejects.toMatchObject({
      exit_code: 3,
      message: `cannot reach the daemon at ${url}: no answer within 0.05 s`,
    });
  });

  it('fails where the answer changes to another protocol', async () => {
    daemon.on('GET /sandbox', (_, response) => {
      response.socket?.end('HTTP/1.1 101 Odd\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    });
    await expect(client().call('GET', '/sandbox')).rejects.toMatchObject({
      exit_code: 3,
      message: `cannot reach the daemon at ${url}: no answer`,
    });
  });

  it('fails where the answer breaks off', async () => {
    daemon.on('GET /sandbox', (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"success":', () => response.destroy());
    });
    await expect(client().call('GET', '/sandbox')).rejects.toMatchObject({
      exit_code: 3,
      message: `cannot reach the daemon at ${url}: connection reset`,
    });
  });
});
