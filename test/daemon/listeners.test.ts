import { spawnSync } from 'node:child_process';
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Router } from '../../src/base/http/listener.ts';
import { Listeners } from '../../src/daemon/listeners.ts';
import { freePort } from '../support/free-port.ts';
import { scratchFolder } from '../support/scratch.ts';

const HAS_IPV6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);

/** Answers with whether the request came over the control socket. */
const ROUTER: Router = {
  routing: (incoming, response) => response.end(String(all.some((each) => each.isControl(incoming.socket)))),
  methodsOf: () => ['GET'],
};
const all: Listeners[] = [];

function listeners(): Listeners {
  const made = new Listeners();
  all.push(made);
  onTestFinished(() => made.stop());
  return made;
}

function ask(where: { host: string; port: number } | { socketPath: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...where, agent: false, headers: { host: 'localhost' } }, (answer) =>
      resolve(text(answer)),
    );
    sent.once('error', reject).end();
  });
}

/** Takes a port on one loopback address. */
async function taken(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe('the listeners', () => {
  it('serve localhost on every loopback address, with one port', async () => {
    const made = listeners();
    await made.listen(ROUTER, 'localhost', 0);
    expect(made.addresses).toEqual(HAS_IPV6 ? ['127.0.0.1', '::1'] : ['127.0.0.1']);
    for (const host of made.addresses) expect(await ask({ host, port: made.port })).toBe('false');
  });

  it('serve another host on its address alone', async () => {
    const made = listeners();
    const port = await freePort();
    await made.listen(ROUTER, '127.0.0.1', port);
    expect([made.addresses, made.port]).toEqual([['127.0.0.1'], port]);
  });

  it.runIf(HAS_IPV6)('name a port that is in use, and keep none of the addresses', async () => {
    const made = listeners();
    const port = await taken('::1');
    await expect(made.listen(ROUTER, 'localhost', port)).rejects.toMatchObject({
      message: `--port ${port} on localhost is in use by another program`,
      exit_code: 1,
    });
    expect(made.addresses).toEqual([]);
    await expect(ask({ host: '127.0.0.1', port })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('name an address that this machine does not have', async () => {
    await expect(listeners().listen(ROUTER, '192.0.2.1', 0)).rejects.toThrow(/^--port 0 on 192\.0\.2\.1: /);
  });

  it('close every connection when they stop, however often', async () => {
    const made = listeners();
    await made.listen(ROUTER, '127.0.0.1', 0);
    const socket = connect(made.port, '127.0.0.1');
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    await new Promise<void>((resolve) => socket.once('connect', resolve));
    // The server learns of the connection with its first bytes.
    socket.on('error', () => {}).write('GET / HTTP/1.1\r\n');
    await ask({ host: '127.0.0.1', port: made.port });
    await Promise.all([made.stop(), made.stop()]);
    await closed;
    expect(made.addresses).toEqual([]);
  });
});

describe('the control socket', () => {
  it('is for its owner alone, and known for what it is', async () => {
    const path = join(scratchFolder(), 'control.sock');
    const made = listeners();
    await made.listen(ROUTER, '127.0.0.1', 0);
    await made.listenOnSocket(ROUTER, path);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await ask({ socketPath: path })).toBe('true');
    expect(await ask({ host: '127.0.0.1', port: made.port })).toBe('false');
  });

  it('replaces one that a daemon has left behind', async () => {
    const path = join(scratchFolder(), 'control.sock');
    const program = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    spawnSync(process.execPath, ['-e', program]);
    expect(existsSync(path)).toBe(true);
    const made = listeners();
    await made.listenOnSocket(ROUTER, path);
    expect(await ask({ socketPath: path })).toBe('true');
  });

  it('does not replace one that is in use, or another file', async () => {
    const path = join(scratchFolder(), 'control.sock');
    await listeners().listenOnSocket(ROUTER, path);
    await expect(listeners().listenOnSocket(ROUTER, path)).rejects.toThrow(
      `--control-socket ${path} is in use by another program`,
    );
    const file = join(scratchFolder(), 'file');
    writeFileSync(file, 'text');
    await expect(listeners().listenOnSocket(ROUTER, file)).rejects.toThrow(
      `--control-socket ${file} exists and is not a socket`,
    );
    expect(statSync(file).size).toBe(4);
  });
});
