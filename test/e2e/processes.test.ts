import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { BuiltDaemon } from '../support/built.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { scratchFolder } from '../support/scratch.ts';

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/programs/${name}`, import.meta.url));

let daemon: BuiltDaemon;

beforeEach(async () => {
  daemon = await BuiltDaemon.start();
});

/** Whether a process with this pid runs. */
function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

describe('real programs', () => {
  it('bash at a terminal shows its prompt, knows its size and is interrupted by Ctrl-C', async () => {
    const pty = { cols: 80, rows: 24 };
    const command = ['bash', '--norc', '--noprofile'];
    const env = { PS1: 'ready> ', TERM: 'dumb' };
    const { process_id } = await daemon.ask('POST', '/processes', { command, pty, env });
    const token = readFileSync(`${daemon.state_dir}/control-token`, 'utf8').trim();
    const socket = new WebSocket(
      `${daemon.url.replace('http', 'ws')}/api/v1/processes/${process_id}/attach`,
      {
        headers: { authorization: `Bearer ${token}` },
      },
    );
    let text = '';
    let exit: { exit_code?: number } = {};
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data));
      if (frame.type === 'output') text += frame.data;
      if (frame.type === 'exit') exit = frame.process;
    });
    const shows = (pattern: RegExp) =>
      eventually(() => expect(text).toMatch(pattern), { timeout: 60_000, interval: 10 });
    const type = (data: string) => socket.send(JSON.stringify({ type: 'stdin', data }));
    await shows(/ready> $/);
    type('stty size\n');
    await shows(/24 80\r\nready> $/);
    socket.send(JSON.stringify({ type: 'resize', cols: 120, rows: 40 }));
    type('stty size\n');
    await shows(/40 120\r\nready> $/);
    type('echo "begun"; sleep 1000\n');
    await shows(/\r\nbegun\r\n$/);
    type('\x03');
    await shows(/\^C.*ready> $/s);
    type('echo "code $?"\n');
    await shows(/code 130\r\nready> $/);
    type('exit 6\n');
    await eventually(() => expect(exit.exit_code).toBe(6), { timeout: 60_000 });
  });

  it('a node server is ready once it listens on its port', async () => {
    const probe = await BuiltDaemon.start(); // a port that was free a moment ago
    const port = Number(new URL(probe.url).port);
    await probe.end('SIGTERM');
    const source = `require('node:http').createServer((q, a) => a.end('served')).listen(${port}, '127.0.0.1')`;
    const { process_id } = await daemon.ask('POST', '/processes', {
      command: [process.execPath, '-e', source],
      ready: { port },
    });
    const { ready } = await daemon.ask('GET', `/processes/${process_id}/wait?for=ready&timeout_ms=30000`);
    expect(ready).toBe(true);
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('served');
    const ended = await daemon.ask('DELETE', `/processes/${process_id}`);
    expect(ended).toMatchObject({ state: 'exited', exit_code: 143, signal: 'SIGTERM' });
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });

  it('a python3 REPL answers line by line over stdin', async () => {
    const repl = daemon.ctl('run', '-i', '--', 'python3', '-i', '-q', '-u');
    repl.type('x = 6 * 7\n').type('print("x is", x)\n');
    await repl.wrote(/x is 42\n/);
    repl.type('import sys; print("err", file=sys.stderr)\n');
    await eventually(() => expect(repl.stderr).toMatch(/err\n/), { timeout: 60_000 });
    expect((await repl.end('exit(9)\n')).code).toBe(9);
  });

  it('a grandchild that holds the pipes does not hold up the end, and DELETE ends it', async () => {
    const { process_id, exit_code, output } = await daemon.ask('POST', '/processes?wait_ms=30000', {
      command: [process.execPath, fixture('leave-behind.mjs')],
    });
    const pid = Number(output.stdout);
    expect([exit_code, isAlive(pid)]).toEqual([0, true]);
    await daemon.ask('DELETE', `/processes/${process_id}`);
    expect(isAlive(pid)).toBe(false);
  });
});

describe('sandboxctl run', () => {
  it('writes what the process writes where it writes it, and ends with its code', async () => {
    const { code, stdout, stderr } = await daemon
      .ctl(
        'run',
        '--cwd',
        '/tmp',
        '--env',
        'A=1',
        '--env',
        'B=x=y',
        '--name',
        'n',
        '--',
        'sh',
        '-c',
        'pwd; echo $A $B >&2; exit 7',
      )
      .end();
    expect([code, stdout, stderr]).toEqual([7, '/tmp\n', '1 x=y\n']);
    expect((await daemon.ctl('run', '--', 'sh', '-c', 'kill -9 $$').end()).code).toBe(137);
    expect((await daemon.ctl('run', '--', 'sh', '-c', 'kill -37 $$').end()).code).toBe(165);
    expect((await daemon.ctl('run', '--timeout', '1ms', '--', 'sleep', '1000').end()).code).toBe(143);
  });

  it('takes what no command is by one line', async () => {
    const missing = await daemon.ctl('run', '--', 'no-such-program').end();
    expect(missing).toMatchObject({
      code: 127,
      stdout: '',
      stderr: expect.stringMatching(/^sandboxctl: command: .*\n$/),
    });
    for (const args of [['run'], ['run', '--env', 'A', '--', 'ls'], ['run', '--timeout', 'x', '--', 'ls']]) {
      const { code, stderr } = await daemon.ctl(...args).end();
      expect([code, stderr.trimEnd().split('\n').length]).toEqual([125, 1]);
    }
  });

  it('hands SIGINT and SIGTERM on', async () => {
    for (const [name, code] of [
      ['SIGINT', 11],
      ['SIGTERM', 12],
    ] as const) {
      const script = 'trap "exit 11" INT; trap "exit 12" TERM; echo up; while :; do sleep 0.05; done';
      const running = daemon.ctl('run', '--', 'sh', '-c', script);
      await running.wrote(/up\n/);
      running.child.kill(name);
      expect((await running.ended).code).toBe(code);
    }
  });

  it('sends stdin whole', async () => {
    const input = Buffer.alloc(3_000_000, 'some of it is text, and some is not: \xff\n', 'latin1');
    const running = daemon.ctl('run', '-i', '--', 'sha256sum');
    running.child.stdin.end(input);
    expect((await running.ended).code).toBe(0);
    expect(running.stdout).toBe(`${createHash('sha256').update(input).digest('hex')}  -\n`);
  });

  it('writes binary output as it is', async () => {
    const input = Buffer.from(Array.from({ length: 256 * 1024 }, (_, i) => (i * 31) % 256));
    const running = daemon.ctl('run', '-i', '--', 'cat');
    running.child.stdin.end(input);
    expect((await running.ended).code).toBe(0);
    expect(running.bytes.equals(input)).toBe(true);
  });

  it('loses no byte of a long output, however slowly it is read', async () => {
    const script = 'head -c 60000000 /dev/urandom | tee /dev/stderr | sha256sum';
    const running = daemon.ctl('run', '--', 'sh', '-c', `(${script}) 3>&1 1>&2 2>&3`);
    running.child.stdout.pause();
    await eventually(async () => {
      const { processes } = await daemon.ask('GET', '/processes');
      expect(processes).toHaveLength(1);
    });
    running.child.stdout.resume();
    expect((await running.ended).code).toBe(0);
    const hash = createHash('sha256').update(running.bytes).digest('hex');
    expect([running.bytes.length, running.stderr]).toEqual([60_000_000, `${hash}  -\n`]);
  });

  it('gives a terminal, with what is typed', async () => {
    const running = daemon.ctl('run', '-i', '-t', '--', 'bash', '--norc', '--noprofile');
    running.type('tty; stty size; exit 3\n');
    const { code, stdout } = await running.end();
    expect(code).toBe(3);
    expect(stdout).toMatch(/\/dev\/pts\/\d+\r\n24 80\r\n/);
  });

  it.each([
    ['by lines', 'cat'],
    ['in raw mode', 'stty raw -echo; echo on; head -c 4 | tr "\\004" D'],
  ])('tells a process that reads a terminal %s where the input ends', async (_, script) => {
    const running = daemon.ctl('run', '-i', '-t', '--', 'sh', '-c', script);
    if (script !== 'cat') await running.wrote(/on/);
    running.type('abc');
    const { code, stdout } = await running.end();
    expect(code).toBe(0);
    expect(stdout).toMatch(script === 'cat' ? /abc$/ : /abcD$/);
  });

  it('goes on where it was when the daemon was killed and is there again', async () => {
    const is_back = join(scratchFolder(), 'is-back');
    const running = daemon.ctl('run', '--', process.execPath, '-e', COUNTER, is_back);
    await running.wrote(/\n20\n/);
    await daemon.end('SIGKILL');
    await running.wrote(/retrying/);
    await daemon.restart();
    writeFileSync(is_back, '');
    const { code, stdout, stderr } = await running.end();
    expect(stdout).toBe(Array.from({ length: 300 }, (_, i) => `${i}\n`).join(''));
    // The new daemon is not its parent: nobody can know, and nobody makes it up.
    expect([code, stderr]).toEqual([125, expect.stringMatching(/it is unknown how \S+ ended\n$/)]);
  });

  it('ends the process when nobody reads any more', async () => {
    const running = daemon.ctl('run', '--', 'yes');
    await running.wrote(/y\n/);
    running.child.stdout.destroy();
    expect((await running.ended).code).toBe(0);
    const { processes } = await daemon.ask('GET', '/processes');
    await daemon.ask('GET', `/processes/${processes[0].process_id}/wait`);
  });
});

/** Counts to 300, a line at a time, so that a daemon that dies meanwhile misses a part; ends once the named file is there. */
const COUNTER = `
  const { existsSync } = require('node:fs');
  let i = 0;
  const t = setInterval(() => {
    if (i < 300) console.log(i++);
    else if (existsSync(process.argv[1])) {
      clearInterval(t);
      process.exitCode = 5;
    }
  }, 10);`;

describe('sandboxctl ps, logs, signal and stop', () => {
  it('show and end processes', async () => {
    expect(await daemon.ctl('ps').end()).toEqual({ code: 0, stdout: '', stderr: 'no processes\n' });
    await daemon.ask('POST', '/processes', {
      process_id: 'talker',
      shell: 'trap "echo hup; echo err >&2" HUP; echo up; while :; do read line; done',
      stdin: 'pipe',
      ready: { log: 'up' },
    });
    await daemon.ask('GET', '/processes/talker/wait?for=ready');
    const listed = (await daemon.ctl('ps').end()).stdout.split('\n');
    expect(listed[0]).toMatch(/^PROCESS_ID +PID +STATE +CODE +AGE +RESTARTS +MEMORY +NAME +COMMAND$/);
    expect(listed[1]).toMatch(
      /^talker +\d+ +running +- +\d+ s +0 +[\d.]+ \w+ +- +\/bin\/sh -c 'trap "echo hup/,
    );
    const json = JSON.parse((await daemon.ctl('ps', '--json').end()).stdout);
    expect(json.processes).toMatchObject([{ process_id: 'talker', state: 'running', ready: true }]);

    const following = daemon.ctl('logs', '-f', 'talker');
    await following.wrote(/up\n/);
    expect(await daemon.ctl('signal', 'talker', 'SIGHUP').end()).toEqual({ code: 0, stdout: '', stderr: '' });
    await eventually(
      () => expect([following.stdout, following.stderr]).toEqual(['up\nhup\n', 'err\n']),
      20_000,
    );
    expect((await daemon.ctl('logs', 'talker', '--tail', '1', '--stream', 'stdout').end()).stdout).toBe(
      'hup\n',
    );
    const pieces = (await daemon.ctl('logs', 'talker', '--json', '--stream', 'stderr').end()).stdout;
    expect(JSON.parse(pieces)).toEqual({ type: 'output', stream: 'stderr', offset: 0, data: 'err\n' });

    const stopped = await daemon.ctl('stop', 'talker', '--grace-ms', '5000').end();
    expect(stopped).toEqual({ code: 0, stdout: 'talker exited by SIGTERM\n', stderr: '' });
    expect((await following.ended).code).toBe(0);
  });

  it('tell what is wrong in one line', async () => {
    for (const args of [
      ['logs', 'none'],
      ['logs', '-f', 'none'],
      ['stop', 'none'],
      ['signal', 'none', 'HUP'],
    ]) {
      const { code, stderr } = await daemon.ctl(...args).end();
      expect([code, stderr]).toEqual([1, 'sandboxctl: There is no process none. (not_found)\n']);
    }
    const { code, stderr } = await daemon.ctl('stop', 'none', '--grace-ms', 'soon').end();
    expect([code, stderr]).toMatchObject([2, expect.stringMatching(/--grace-ms/)]);
  });
});

describe('the daemon', () => {
  it('tells the start and the end of a process to the webhook', async () => {
    const consumer = await startConsumer();
    const reporting = await BuiltDaemon.start('--webhook-url', consumer.url);
    const { process_id, pid } = await reporting.ask('POST', '/processes?wait_ms=30000', {
      name: 'reported',
      shell: 'echo out; exit 4',
      env: { SECRET: 'never told' },
    });
    const started = (await consumer.arrival('process.started')).event.payload;
    const exited = (await consumer.arrival('process.exited')).event.payload;
    const command = ['/bin/sh', '-c', 'echo out; exit 4'];
    expect(started).toMatchObject({ process_id, pid, command, name: 'reported', restart_count: 0 });
    expect(exited).toMatchObject({
      process_id,
      pid,
      exit_code: 4,
      stdout_preview: 'out\n',
      timed_out: false,
    });
    expect(consumer.deliveries.map(({ body }) => body).join('')).not.toContain('never told');
  });

  it('reads no more than it must of a body that is too large', async () => {
    const sent = request(`${daemon.url}/api/v1/processes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${readFileSync(`${daemon.state_dir}/control-token`, 'utf8').trim()}`,
        'content-type': 'application/json',
        'content-length': 10 ** 12,
      },
    });
    sent.on('error', () => {}).write('{');
    const status = await new Promise((resolve) =>
      sent.on('response', ({ statusCode }) => resolve(statusCode)),
    );
    sent.destroy();
    expect(status).toBe(413);
  });
});
