import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, type ClientRequest, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { createHttpApp } from '../../../../src/base/http/app.ts';
import { Connections, createListener } from '../../../../src/base/http/listener.ts';
import { createLog } from '../../../../src/base/log.ts';
import { FILE_TRANSFERS_MAX } from '../../../../src/contract/defaults.ts';
import { DAEMON_ROUTES } from '../../../../src/contract/routes/daemon.ts';
import { FileService } from '../../../../src/daemon/api/files/file-service.ts';
import { forwardedFileHandlers } from '../../../../src/daemon/api/files/forwarded-routes.ts';
import { LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { eventually } from '../../../support/eventually.ts';
import { IS_UID_0 } from '../../../support/rights.ts';
import { scratchFolder } from '../../../support/scratch.ts';
import { serveSome } from '../../../support/serve-some.ts';

const LARGE_BYTES = 64 * 1024 * 1024;

describe('transfers', () => {
  it('are 64 at a time, whoever they act as; an end and a break both make room', async () => {
    const daemon = await LocalDaemon.start();
    const folder = scratchFolder();
    chmodSync(folder, 0o777);
    const uploads: ClientRequest[] = [];
    const begin = (name: string, as = '') => {
      const path = `${daemon.url}/files?path=${encodeURIComponent(join(folder, name))}${as}`;
      const sent = request(path, { method: 'PUT', headers: daemon.authorization, agent: false });
      onTestFinished(() => void sent.destroy());
      sent.on('error', () => {});
      sent.write('some');
      uploads.push(sent);
      return sent;
    };
    const underWay = () => readdirSync(folder).filter((name) => name.startsWith('.sandboxd-')).length;
    for (let i = 0; i < FILE_TRANSFERS_MAX; i++)
      begin(`f${i}`, IS_UID_0 && i % 2 === 0 ? '&user=nobody' : '');
    await eventually(() => expect(underWay()).toBe(FILE_TRANSFERS_MAX));
    const file = `path=${encodeURIComponent(join(folder, 'more'))}`;
    const tries = [
      () => daemon.ask(`/files?${file}`, { method: 'PUT', body: 'x' }),
      () => daemon.ask(`/files?${file}`),
      () => daemon.ask(`/files/archive?${file}`),
      () => daemon.ask(`/files/archive?${file}`, { method: 'PUT', body: 'x' }),
      () => daemon.ask('/files/copy', { json: { source: folder, destination: join(folder, 'copy') } }),
      ...(IS_UID_0 ? [() => daemon.ask(`/files?${file}&user=nobody`, { method: 'PUT', body: 'x' })] : []),
    ];
    for (const ask of tries) {
      const { status, error, headers } = await ask();
      expect([status, error.code, headers.get('retry-after')]).toEqual([429, 'too_many_requests', '1']);
    }
    // Everything else goes on.
    expect((await daemon.ask(`/files/list?path=${encodeURIComponent(folder)}`)).data.entries).toEqual([]);
    const [first, second] = uploads as [ClientRequest, ClientRequest];
    const answered = new Promise<IncomingMessage>((resolve) => first.once('response', resolve));
    first.end();
    expect((await answered).statusCode).toBe(200);
    await eventually(async () =>
      expect((await daemon.ask(`/files?${file}`, { method: 'PUT', body: 'x' })).status).toBe(200),
    );
    begin('again');
    await eventually(() => expect(underWay()).toBe(FILE_TRANSFERS_MAX));
    expect((await daemon.ask(`/files?${file}`)).status).toBe(429);
    second.destroy();
    await eventually(async () => expect((await daemon.ask(`/files?${file}`)).text).toBe('x'));
    for (const upload of uploads) upload.destroy();
    await eventually(() => expect(readdirSync(folder).sort()).toEqual(['f0', 'more']));
  });

  it('are cut once their client moves no byte for the time allowed, both ways, and not before', async () => {
    const IDLE_MS = 2_000;
    const SLOW_BYTES = 30;
    const folder = scratchFolder();
    const state_dir = join(folder, 'state');
    const [journal_folder, clock, log] = [
      join(state_dir, 'files', 'uploads'),
      systemClock,
      createLog('silent'),
    ];
    const config = {
      state_dir,
      control_token_file: join(state_dir, 'token'),
      control_socket: null,
      process_user: null,
    };
    const service = new FileService({
      clock,
      log,
      config,
      folder: join(state_dir, 'files'),
      idle_timeout_ms: IDLE_MS,
    });
    const app = createHttpApp(log);
    await serveSome(
      app,
      DAEMON_ROUTES,
      forwardedFileHandlers({ state: 'running', files: async () => service }),
    );
    await app.ready();
    const server = createListener(app, new Connections());
    const port = await new Promise<number>((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
    });
    onTestFinished(async () => {
      server.closeAllConnections();
      server.close();
      await service.stop();
    });
    const path = (name: string) => `/api/v1/files?path=${encodeURIComponent(join(folder, name))}`;
    /** A client that sends this and then takes nothing; `cut` once the server has closed its connection. */
    const hanging = (text: string): { socket: Socket; cut: Promise<void> } => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {}).pause();
      onTestFinished(() => void socket.destroy());
      const cut = new Promise<void>((resolve) => {
        server.on('connection', (other) => {
          if (other.remotePort === socket.localPort) other.once('close', () => resolve());
        });
      });
      socket.write(text);
      return { socket, cut };
    };
    writeFileSync(join(folder, 'large'), Buffer.alloc(LARGE_BYTES));
    const upload = hanging(`PUT ${path('new')} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nsome`);
    const download = hanging(`GET ${path('large')} HTTP/1.1\r\nHost: x\r\n\r\n`);
    // Slower than any other, but never idle.
    const slow = hanging(`PUT ${path('slow')} HTTP/1.1\r\nHost: x\r\nContent-Length: ${SLOW_BYTES}\r\n\r\n`);
    let trickled = 0;
    const trickle = setInterval(() => {
      slow.socket.write('.');
      trickled += 1;
      if (trickled === SLOW_BYTES) clearInterval(trickle);
    }, IDLE_MS / 20);
    onTestFinished(() => clearInterval(trickle));
    const answer = new Promise<string>((resolve) =>
      slow.socket.once('data', (data) => resolve(String(data))),
    );
    slow.socket.resume();
    await Promise.all([upload.cut, download.cut]);
    let received = 0;
    download.socket.on('data', (data) => {
      received += data.length;
    });
    const closed = new Promise((resolve) => download.socket.once('close', resolve));
    download.socket.resume();
    await closed;
    expect(received).toBeLessThan(LARGE_BYTES);
    expect(await answer).toMatch(/^HTTP\/1.1 200 /);
    expect(readdirSync(folder).sort()).toEqual(['large', 'slow', 'state']);
    expect(readdirSync(journal_folder)).toEqual([]);
  });

  it('of large files leave their connection as whole as those of small ones', async () => {
    const daemon = await LocalDaemon.start();
    const folder = scratchFolder();
    const content = Buffer.alloc(3 * 1024 * 1024 + 1, 'content');
    writeFileSync(join(folder, 'large'), content);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const ports = new Set<number | undefined>();
    const get = (route: string, headers = {}) =>
      new Promise<Buffer>((resolve, reject) => {
        const url = `${daemon.url}/files${route}?path=${encodeURIComponent(join(folder, 'large'))}`;
        const sent = request(url, { agent, headers: { ...daemon.authorization, ...headers } }, (response) => {
          ports.add(response.socket.localPort);
          resolve(buffer(response));
        });
        sent.on('error', reject).end();
      });
    for (let i = 0; i < 3; i++) {
      expect((await get('')).equals(content)).toBe(true);
      expect(JSON.parse(String(await get('/stat'))).data.size).toBe(content.length);
      expect((await get('', { range: 'bytes=7-2000006' })).equals(content.subarray(7, 2_000_007))).toBe(true);
    }
    expect(ports.size).toBe(1);
  });

  it('of large files arrive whole, are refused early, and leave nothing when they break off', async () => {
    const daemon = await LocalDaemon.start();
    const folder = scratchFolder();
    const content = Buffer.alloc(5 * 1024 * 1024 + 1, 'content');
    const path = (name: string) => `/files?path=${encodeURIComponent(join(folder, name))}`;
    const put = (name: string, headers = {}) =>
      daemon.ask(path(name), { method: 'PUT', body: content, headers });
    for (const name of ['one', 'two', 'one']) {
      expect((await put(name)).data).toMatchObject({ written: true, size: content.length });
      expect(readFileSync(join(folder, name)).equals(content)).toBe(true);
    }
    expect((await put('one', { 'if-none-match': '*' })).error.code).toBe('precondition_failed');
    const sent = request(`${daemon.url}${path('cut')}`, {
      method: 'PUT',
      headers: { ...daemon.authorization, 'content-length': content.length },
    });
    sent.on('error', () => {}).write(content.subarray(1));
    await eventually(() => expect(readdirSync(folder)).toHaveLength(3));
    sent.destroy();
    await eventually(() => expect(readdirSync(folder).sort()).toEqual(['one', 'two']));
  });
});
