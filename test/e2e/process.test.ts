import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { freePort } from '../support/free-port.ts';
import { launch, runSandboxd, SANDBOXD, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

const SECRET = 'a-secret-made-for-this-test';

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a start that fails', () => {
  it('with another daemon on the state directory exits 1 with one line that names it', async () => {
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

  it('with a port that is taken exits 1 with one line and leaves the state directory alone', async () => {
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
  ])('with the options %j exits 2 with one line', async (args, line) => {
    const program = await runSandboxd(args);
    expect([program.code, program.stdout]).toEqual([2, '']);
    expect(program.stderr).toMatch(line);
    expect(program.stderr.split('\n')).toHaveLength(2);
    expect(existsSync(program.state_dir)).toBe(false);
  });

  it('delivering to itself exits 2 with one line', async () => {
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

  it('is what NODE_TLS_REJECT_UNAUTHORIZED=0 leads to', async () => {
    const program = await runSandboxd([], { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } });
    expect(program.code).toBeGreaterThan(0);
    expect(program.stderr).toContain('NODE_TLS_REJECT_UNAUTHORIZED=0');
  });
});

describe('asking', () => {
  it.each(['--version', '--help'])('%s is answered on stdout, with exit code 0', async (option) => {
    const program = await runSandboxd([option]);
    expect([program.code, program.stderr]).toEqual([0, '']);
    expect(program.stdout).toMatch(option === '--version' ? /^\d+\.\d+\.\d+\n$/ : /--webhook-url <url>/);
  });
});

describe('the secret', () => {
  it.each<[string, string[], Record<string, string>]>([
    ['by flag', ['--webhook-secret', SECRET], {}],
    ['by flag with =', [`--webhook-secret=${SECRET}`], {}],
    ['by environment', [], { SANDBOXD_WEBHOOK_SECRET: SECRET }],
  ])('%s signs, and is seen neither at the daemon nor at its children', async (_, args, env) => {
    const consumer = await startConsumer();
    const program = await startSandboxd(
      [
        ...args,
        '--webhook-url',
        consumer.url,
        '--',
        'sh',
        '-c',
        'env; cat /proc/$PPID/environ /proc/$PPID/cmdline; exec sleep 1000',
      ],
      { env: { ...env, PLAIN: 'stays' } },
    );
    await consumer.arrival('sandbox.ready');
    expect(consumer.unsigned(SECRET)).toEqual([]);
    for (const file of ['cmdline', 'environ']) {
      expect(readFileSync(`/proc/${program.pid}/${file}`, 'latin1'), file).not.toContain(SECRET);
    }
    await vi.waitFor(() => expect(program.stdout).toContain('PLAIN=stays'));
    await vi.waitFor(() => expect(program.stdout).toContain('sandboxd.cjs'));
    expect(program.stdout + program.stderr).not.toContain(SECRET);
    expect(program.stdout).not.toContain('SANDBOXD_WEBHOOK_SECRET=a');
    expect(consumer.deliveries.map(({ body }) => body).join()).not.toContain(SECRET);
  });
});

describe('the main command', () => {
  it.each<[string, string, number]>([
    ['exits 0', 'exit 0', 0],
    ['exits 3', 'exit 3', 3],
    ['is killed', 'kill -9 $$', 137],
    ['crashes', 'kill -SEGV $$', 139],
  ])('that %s gives its code to the daemon', async (_, script, code) => {
    expect(await runSandboxd(['--', 'sh', '-c', script])).toMatchObject({ code, signal: null });
  });

  it('that does not exist ends the daemon with 127 and one line, without a ready event', async () => {
    const consumer = await startConsumer();
    const program = await runSandboxd(['--webhook-url', consumer.url, '--', '/does/not/exist']);
    expect(program.code).toBe(127);
    expect(
      program.stderr
        .trimEnd()
        .split('\n')
        .filter((line) => !line.startsWith('{')),
    ).toHaveLength(1);
    expect(program.stderr).toContain('/does/not/exist');
    expect(consumer.types).toEqual([]);
  });

  it('that may not be executed ends the daemon with 126', async () => {
    const path = join(scratchFolder(), 'plain');
    writeFileSync(path, 'not a program');
    chmodSync(path, 0o644);
    expect((await runSandboxd(['--', path])).code).toBe(126);
  });

  it('has its output on stdout, and the log is alone on stderr', async () => {
    const program = await runSandboxd(['--', 'sh', '-c', 'echo out; echo err >&2; printf "no newline"']);
    expect(program.stdout).toContain('out\n');
    expect(program.stdout).toContain('err\n');
    expect(program.stdout).toContain('no newline');
    expect(
      program.stderr
        .trimEnd()
        .split('\n')
        .every((line) => line.startsWith('{')),
    ).toBe(true);
  });

  it('tells its start and its end, and the sandbox its own, in order', async () => {
    const consumer = await startConsumer();
    const program = await runSandboxd([
      '--webhook-url',
      consumer.url,
      '--delivery-concurrency',
      '1',
      '--',
      'sh',
      '-c',
      'echo hello; exit 3',
    ]);
    expect(program.code).toBe(3);
    const events = consumer.deliveries.map(({ event }) => event).toSorted((a, b) => a.sequence - b.sequence);
    const types = events.map(({ event_type }) => event_type);
    expect(types.toSorted()).toEqual([
      'process.exited',
      'process.started',
      'sandbox.killed',
      'sandbox.ready',
    ]);
    expect(types.at(-1)).toBe('sandbox.killed');
    expect(consumer.of('process.exited')[0]?.event.payload).toMatchObject({
      exit_code: 3,
      signal: null,
      stdout_preview: 'hello\n',
    });
    expect(consumer.of('sandbox.killed')[0]?.event.payload).toMatchObject({
      reason: 'main_process_exited',
      signal: null,
    });
  });

  it('gets SIGHUP and SIGINT from the daemon and decides what they mean', async () => {
    const script = `
      process.on('SIGHUP', () => console.log('hup'));
      process.on('SIGINT', () => process.exit(5));
      setInterval(() => {}, 1000);
      console.log('up');`;
    const program = launch(['--', process.execPath, '-e', script]);
    await vi.waitFor(() => expect(program.stdout).toBe('up\n'), { timeout: 20_000 });
    program.child.kill('SIGHUP');
    await vi.waitFor(() => expect(program.stdout).toBe('up\nhup\n'));
    expect(await program.end('SIGINT')).toEqual({ code: 5, signal: null });
  });

  it('and all its descendants end with SIGTERM, and sandbox.killed is delivered before the exit', async () => {
    const consumer = await startConsumer();
    const program = launch(['--webhook-url', consumer.url, '--', 'sh', '-c', 'sleep 1000 & echo $!; wait']);
    await vi.waitFor(() => expect(program.stdout).toMatch(/^\d+\n$/), { timeout: 20_000 });
    await consumer.arrival('sandbox.ready');
    const descendant = Number(program.stdout);
    expect(isAlive(descendant)).toBe(true);
    expect(await program.end('SIGTERM')).toEqual({ code: 143, signal: null });
    await vi.waitFor(() => expect(isAlive(descendant)).toBe(false));
    expect(consumer.types.at(-1)).toBe('sandbox.killed');
    expect(consumer.of('process.exited')).toHaveLength(1);
    expect(consumer.of('process.crashed')).toEqual([]);
    expect(consumer.of('sandbox.killed')[0]?.event.payload).toMatchObject({
      reason: 'signal',
      signal: 'SIGTERM',
    });
  });

  it('that ignores SIGTERM is killed after the grace', async () => {
    const program = launch([
      '--shutdown-grace-ms',
      '300',
      '--',
      'sh',
      '-c',
      'trap "" TERM; echo up; while :; do sleep 1; done',
    ]);
    await vi.waitFor(() => expect(program.stdout).toBe('up\n'), { timeout: 20_000 });
    expect(await program.end('SIGTERM')).toEqual({ code: 137, signal: null });
  });

  it('that ends leaves the daemon running with --keep-alive', async () => {
    const program = await startSandboxd(['--keep-alive', '--', 'true']);
    await vi.waitFor(async () => {
      const { data } = await program.call('GET', '/api/v1/processes/main');
      expect(data.state).toBe('exited');
    });
    expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('is what --keep-alive is refused without, also from the environment, and false means off', async () => {
    expect((await runSandboxd(['--keep-alive'])).code).toBe(2);
    expect((await runSandboxd(['--', 'true'], { env: { SANDBOXD_KEEP_ALIVE: 'false' } })).code).toBe(0);
  });
});

describe('the daemon', () => {
  it('is the process that was started, and SIGTERM ends it with 0', async () => {
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

  it('ends at once with a second SIGTERM, though deliveries wait', async () => {
    const consumer = await startConsumer();
    consumer.answer = () => {};
    const program = await startSandboxd(['--webhook-url', consumer.url, '--shutdown-grace-ms', '600000']);
    await consumer.arrival('sandbox.ready');
    program.child.kill('SIGTERM');
    await program.logged('shutting down');
    expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('opens no inspector with SIGUSR1 and does not end with SIGHUP', async () => {
    const program = await startSandboxd([]);
    program.child.kill('SIGUSR1');
    program.child.kill('SIGHUP');
    expect((await program.call('GET', '/api/v1/sandbox')).status).toBe(200);
    expect(program.stderr).not.toMatch(/debugger|inspector/i);
  });

  it('goes on without a reader of its output', async () => {
    const program = await startSandboxd(['--', 'sh', '-c', 'while :; do echo line; sleep 0.05; done']);
    program.child.stdout?.destroy();
    await vi.waitFor(async () => {
      const { data } = await program.call('GET', '/api/v1/processes/main');
      expect(data.state).toBe('running');
    });
    expect((await program.end('SIGTERM')).code).toBe(143);
  });
});
