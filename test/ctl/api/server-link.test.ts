import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { daemonAt } from '../../../src/ctl/api/clients.ts';
import { findDaemon } from '../../../src/ctl/api/config.ts';
import { StandInDaemon, succeed } from '../../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
let url: string;

beforeAll(async () => {
  url = await daemon.start();
});

afterAll(() => daemon.stop());

function client(path = '') {
  return daemonAt(findDaemon({ url: url + path }, {}).address, { value: 'a-token' }).daemon;
}

describe("the client's way to a daemon", () => {
  it('resolves with the data of the answer', async () => {
    daemon.on('GET /sandbox', (_, response) => succeed(response, 200, { state: 'running' }));
    expect(await client().GET('/api/v1/sandbox')).toEqual({ state: 'running' });
    expect(daemon.received.at(-1)?.headers).toMatchObject({ authorization: 'Bearer a-token' });
  });

  it('asks below the path of its URL', async () => {
    const query = { stream: 'x y' as never, offset: undefined };
    const path = { process_id: 'p' };
    await client('/base/')
      .sandbox.GET('/api/v1/processes/{process_id}/output', { path, query })
      .catch(() => {});
    expect(daemon.received.at(-1)?.url).toBe('/base/api/v1/processes/p/output?stream=x+y');
  });

  it('gives a daemon up that stays silent', async () => {
    daemon.on('GET /sandbox', () => {});
    await expect(client().GET('/api/v1/sandbox', { timeout_ms: 50 })).rejects.toMatchObject({
      code: 'unreachable',
      message: `cannot reach the daemon at ${url}: no answer within 0.05 s`,
    });
  });

  it('fails where the answer changes to another protocol', async () => {
    daemon.on('GET /sandbox', (_, response) => {
      response.socket?.end('HTTP/1.1 101 Odd\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    });
    await expect(client().GET('/api/v1/sandbox')).rejects.toMatchObject({
      code: 'unreachable',
      message: `cannot reach the daemon at ${url}: no answer`,
    });
  });

  it('fails where the answer breaks off', async () => {
    daemon.on('GET /sandbox', (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"success":', () => response.destroy());
    });
    await expect(client().GET('/api/v1/sandbox')).rejects.toMatchObject({
      code: 'unreachable',
      message: `cannot reach the daemon at ${url}: connection reset`,
    });
  });

  it('gives a stream as those have it who know fetch', async () => {
    daemon.on('GET /files', (_, response) => {
      response.writeHead(200, { 'content-type': 'application/octet-stream', etag: '"1"' }).end('content');
    });
    const { files } = client().sandbox;
    const headers = { accept: 'application/octet-stream' };
    const file = await files.download('/a', { headers });
    expect([file.status, file.headers.get('etag'), await file.text()]).toEqual([200, '"1"', 'content']);
    expect(await files.readText('/a')).toBe('content');
  });
});
