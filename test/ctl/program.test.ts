import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import { run, start } from '../support/ctl/sandboxctl.ts';
import { delivery, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

describe('sandboxctl', () => {
  it('documents its exit codes', async () => {
    const { code, stdout } = await run(['--help']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Exit codes: 0 .*; 1 .*; 2 .*; 3 /);
  });

  it('prints its version', async () => {
    expect(await run(['--version'])).toEqual({ code: 0, stdout: `${VERSION}\n`, stderr: '' });
  });

  it.each([
    [['foo'], "unknown command 'foo'"],
    [['publish'], "missing required argument 'json'"],
    [['status', '--stat'], "unknown option '--stat'"],
    [
      ['deliveries', '--limit', '0'],
      "option '--limit <number>' argument '0' is invalid. It must be an integer of at least 1.",
    ],
    [
      ['deliveries', '--state', 'lost'],
      "option '--state <state>' argument 'lost' is invalid. Allowed choices are pending, delivered, failed, expired, foreign.",
    ],
    [
      ['events', '--since', '-1'],
      "option '--since <sequence>' argument '-1' is invalid. It must be an integer of at least 0.",
    ],
    [
      ['listen', '--port', '65536'],
      "option '--port <port>' argument '65536' is invalid. It must be an integer from 0 to 65535.",
    ],
    [['listen', '--secret', ''], "option '--secret <secret>' argument '' is invalid. It must not be empty."],
    [
      ['listen', '--secret', 'a', '--secret-file', 'b'],
      "option '--secret <secret>' cannot be used with option '--secret-file <path>'",
    ],
    [['listen', '--secret-file', '/none'], 'cannot read /none: no such file'],
    [['status', '--token-file', '/none'], 'cannot read /none: no such file'],
    [['status', '--url', 'nowhere'], "--url must be http://…, https://… or unix:/path, not 'nowhere'"],
  ])('answers %j with 2 and one line', async (args, message) => {
    const ended = await run(args);
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toMatch(/^sandboxctl: [^\n]*\n$/);
    expect(ended.stderr).toContain(message);
  });

  it('exits with 3 and one line where the daemon cannot be reached', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    expect(await run(['status', '--url', `http://127.0.0.1:${port}`])).toEqual({
      code: 3,
      stdout: '',
      stderr: `sandboxctl: cannot reach the daemon at http://127.0.0.1:${port}: connection refused\n`,
    });
    const { code, stderr } = await run(['status', '--url', 'unix:/none/control.sock']);
    expect([code, stderr]).toEqual([
      3,
      'sandboxctl: cannot reach the daemon at unix:/none/control.sock: no such file\n',
    ]);
  });

  it('exits with 1 where something else answers', async () => {
    const server = createServer((_, response) => void response.end('<html>'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await run(['status', '--url', url])).toEqual({
      code: 1,
      stdout: '',
      stderr: `sandboxctl: ${url} answered 200 and is not a sandboxd daemon\n`,
    });
    server.close();
  });

  it('ends quietly where the reader of its output has seen enough', async () => {
    const daemon = new StandInDaemon();
    const url = await daemon.start();
    daemon.on('GET /webhook/deliveries', (_, response) => {
      running.child.stdout.destroy();
      succeed(response, 200, { deliveries: [delivery(2), delivery(1)], next_cursor: null });
    });
    const running = start(['deliveries', '--url', url]);
    expect(await running.ended()).toEqual({ code: 0, stdout: '', stderr: '' });
    await daemon.stop();
  });
});
