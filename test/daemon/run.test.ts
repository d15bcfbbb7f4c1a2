import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { runSandboxd, SANDBOXD, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

/** Loaded machines are slow. */
const WAIT = { timeout: 60_000 };

const SECRET = 'a-secret-made-for-this-test';

describe('a start that fails', () => {
  it('because another daemon uses the state directory exits 1, with one line that names it', async () => {
    const first = await startSandboxd([]);
    const second = await runSandboxd([], { state_dir: first.state_dir });
    expect(second.code).toBe(1);
    expect(second.stderr).toMatch(
      /^sandboxd: state directory \S+ is in use by another sandboxd \(pid \d+\)\n$/,
    );
    expect(second.stderr).toContain(`(pid ${first.pid})`);
    expect((await first.call('GET', '/api/v1/sandbox')).status).toBe(200);
    await first.end('SIGKILL');
    const third = await startSandboxd([], { state_dir: first.state_dir });
    expect((await third.call('GET', '/api/v1/sandbox')).status).toBe(200);
  });

  it('because the port is in use exits 1 with one line, and creates no state directory', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const port = String((server.address() as AddressInfo).port);
    const program = await runSandboxd(['--port', port]);
    expect(program.code).toBe(1);
    expect(program.stderr).toMatch(/^sandboxd: --port \d+ on localhost is in use by another program\n$/);
    expect(existsSync(program.state_dir)).toBe(false);
  });

  it.each<[string[], RegExp]>([
    [['--port', 'x'], /^sandboxd: .*--port.*integer from 0 to 65535.*\n$/],
    [['--nonsense'], /^sandboxd: .*--nonsense.*\n$/],
    [['--webhook-url', 'ftp://x/'], /^sandboxd: --webhook-url must be an http or https URL\n$/],
    [['--restart', 'perhaps'], /^sandboxd: .*--restart.*never, on-failure, always.*\n$/],
    [['--webhook-url'], /^sandboxd: .*--webhook-url.*\n$/],
    [['sleep', '1'], /^sandboxd: sleep is not an option; put a main command after --\n$/],
  ])('because of the options %j exits 2 with one line', async (args, line) => {
    const program = await runSandboxd(args);
    expect([program.code, program.stdout]).toEqual([2, '']);
    expect(program.stderr).toMatch(line);
    expect(program.stderr.split('\n')).toHaveLength(2);
    expect(existsSync(program.state_dir)).toBe(false);
  });

  it("because the webhook is the daemon's own API exits 2 with one line", async () => {
    const port = String(await freePort());
    const program = await runSandboxd([
      '--port',
      port,
      '--webhook-url',
      `http://127.1:${port}/api/v1/webhook/publish`,
    ]);
    expect(program.code).toBe(2);
    expect(program.stderr).toMatch(/--webhook-url is this daemon's own API/);
    expect(
      program.stderr
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('{')),
    ).toHaveLength(1);
  });

  it('because of NODE_TLS_REJECT_UNAUTHORIZED=0 names that variable', async () => {
    const program = await runSandboxd([], { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } });
    expect(program.code).toBeGreaterThan(0);
    expect(program.stderr).toContain('NODE_TLS_REJECT_UNAUTHORIZED=0');
  });
});
describe('a question', () => {
  it.each(['--version', '--help'])('by %s is answered on stdout, with exit code 0', async (option) => {
    const program = await runSandboxd([option]);
    expect([program.code, program.stderr]).toEqual([0, '']);
    expect(program.stdout).toMatch(option === '--version' ? /^\d+\.\d+\.\d+\n$/ : /--webhook-url <url>/);
  });
});
describe('the program', () => {
  it('is the process that was started, and exits 0 on SIGTERM', async () => {
    const program = await startSandboxd([], { env: { SANDBOXD_WEBHOOK_SECRET: SECRET } });
    expect(readFileSync(`/proc/${program.pid}/cmdline`, 'utf8')).toContain(SANDBOXD);
    expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(
      program.stderr
        .trimEnd()
        .split('\n')
        .every((line) => line.startsWith('{')),
    ).toBe(true);
  });

  it('warns of options that have no effect without a webhook, and only then', async () => {
    const program = await startSandboxd(['--watch-dir', '/srv'], {
      env: { SANDBOXD_WEBHOOK_SECRET: SECRET },
    });
    for (const line of [
      '--webhook-secret has no effect without --webhook-url: nothing is delivered',
      '--watch-dir has no effect without --webhook-url: changes are not reported',
    ])
      await program.logged(line);
    const meant = await startSandboxd(
      ['--webhook-url', 'http://127.0.0.1:9/', '--watch-dir', scratchFolder()],
      {
        env: { SANDBOXD_WEBHOOK_SECRET: SECRET },
      },
    );
    await meant.end('SIGTERM');
    expect(meant.stderr).not.toContain('has no effect');
  });

  it('exits immediately on a second SIGTERM, although deliveries are pending', async () => {
    const consumer = await startConsumer();
    consumer.answer = () => {};
    const program = await startSandboxd(['--webhook-url', consumer.url, '--shutdown-grace-ms', '600000']);
    await consumer.arrival('sandbox.ready');
    program.child.kill('SIGTERM');
    await program.logged('shutting down');
    expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('exits on a second SIGTERM also while it waits for a delivery that hangs', async () => {
    const consumer = await startConsumer();
    consumer.answer = () => {};
    const program = await startSandboxd(['--webhook-url', consumer.url, '--shutdown-grace-ms', '600000']);
    await consumer.arrival('sandbox.ready');
    program.child.kill('SIGTERM');
    await consumer.arrival('sandbox.killed');
    expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('opens no inspector on SIGUSR1, and does not exit on SIGHUP', async () => {
    const program = await startSandboxd([]);
    program.child.kill('SIGUSR1');
    program.child.kill('SIGHUP');
    expect((await program.call('GET', '/api/v1/sandbox')).status).toBe(200);
    expect(program.stderr).not.toMatch(/debugger|inspector/i);
  });

  it('keeps running when nobody reads its output', async () => {
    const program = await startSandboxd(['--', 'sh', '-c', 'while :; do echo line; sleep 0.05; done']);
    program.child.stdout?.destroy();
    await eventually(async () => {
      const { data } = await program.call('GET', '/api/v1/processes/main');
      expect(data.state).toBe('running');
    }, WAIT);
    expect((await program.end('SIGTERM')).code).toBe(143);
  });
});
