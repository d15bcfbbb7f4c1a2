import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { run } from '../../support/ctl/sandboxctl.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

const NOBODY = 65_534;
const TOKEN = 'the-token-of-the-daemon';

/** A server of another user that prints what it receives and answers as a daemon would. */
const SERVER = `
  const server = require('node:http').createServer((request, response) => {
    console.log(JSON.stringify({ url: request.url, headers: request.headers }));
    response.writeHead(200, { 'content-type': 'application/json', 'x-request-id': 'r' });
    response.end('{"success":true,"data":{"processes":[],"deliveries":[],"next_cursor":null}}');
  });
  server.on('upgrade', (request, socket) => { console.log(JSON.stringify(request.headers)); socket.destroy(); });
  server.listen(0, process.argv[1], () => console.log('port ' + server.address().port));`;

async function strange(address: string, uid: number): Promise<{ port: number; received: () => string }> {
  const child: ChildProcess = spawn(process.execPath, ['-e', SERVER, address], {
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(uid === 0 ? {} : { uid, gid: uid }),
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let received = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    received += text;
  });
  await expect.poll(() => received, { timeout: 60_000 }).toMatch(/^port \d+\n/);
  return { port: Number(/^port (\d+)/.exec(received)?.[1]), received: () => received };
}

function stateDir(): string {
  const state_dir = join(scratchFolder(), 'state');
  mkdirSync(state_dir, { mode: 0o700 });
  writeFileSync(join(state_dir, 'control-token'), `${TOKEN}\n`, { mode: 0o600 });
  return state_dir;
}

describe.runIf(IS_ROOT)('where another user listens on the port of the daemon', () => {
  it.each([
    ['127.0.0.1', 'localhost'],
    ['127.0.0.1', '127.0.0.1'],
    ['0.0.0.0', '127.0.0.1'],
    ['::', '127.0.0.1'],
    ['::1', '[::1]'],
  ])('on %s, the token is not sent to %s', async (address, host) => {
    const { port, received } = await strange(address, NOBODY);
    const state_dir = stateDir();
    for (const args of [['ps'], ['status'], ['run', '-t', '--', 'true']]) {
      const ended = await run(['--url', `http://${host}:${port}`, '--state-dir', state_dir, ...args]);
      expect(ended).toMatchObject({ code: args[0] === 'run' ? 125 : 1, stdout: '' });
      expect(ended.stderr).toMatch(
        /^sandboxctl: the token is not sent to .*: user 65534 listens on it, .*--token-file.*\n$/,
      );
    }
    expect(received()).not.toContain(TOKEN);
  });

  it('the token is sent where its file is named, and to root in any case', async () => {
    const state_dir = stateDir();
    const token_file = join(state_dir, 'control-token');
    const other = await strange('127.0.0.1', NOBODY);
    expect(
      (await run(['ps', '--url', `http://127.0.0.1:${other.port}`, '--token-file', token_file])).code,
    ).toBe(0);
    expect(other.received()).toContain(TOKEN);
    const own = await strange('127.0.0.1', 0);
    expect((await run(['ps', '--url', `http://localhost:${own.port}`, '--state-dir', state_dir])).code).toBe(
      0,
    );
    expect(own.received()).toContain(TOKEN);
  });

  it('the token of a variable is not sent, either', async () => {
    const { port, received } = await strange('127.0.0.1', NOBODY);
    const SANDBOXD_CONTROL_TOKEN_FILE = join(stateDir(), 'control-token');
    chmodSync(SANDBOXD_CONTROL_TOKEN_FILE, 0o644);
    const url = ['--url', `http://127.0.0.1:${port}`];
    expect((await run(['ps', ...url], { SANDBOXD_CONTROL_TOKEN_FILE })).code).toBe(1);
    expect(received()).not.toContain(TOKEN);
  });
});
