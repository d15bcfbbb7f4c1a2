import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it, vi } from 'vitest';
import { ApiError } from '../../src/contract/errors.ts';
import type { DaemonConfig } from '../../src/daemon/config.ts';
import { MainCommand } from '../../src/daemon/main-command.ts';
import type { Supervisor } from '../../src/process/supervisor.ts';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { launch, runSandboxd, startSandboxd } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

/** Loaded machines are slow. */
const WAIT = { timeout: 60_000 };

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe('the main command', () => {
  it.each<[string, string, number]>([
    ['exits 0', 'exit 0', 0],
    ['exits 3', 'exit 3', 3],
    ['is killed', 'kill -9 $$', 137],
    ['crashes', 'kill -SEGV $$', 139],
  ])('that %s determines the exit code of the daemon', async (_, script, code) => {
    expect(await runSandboxd(['--', 'sh', '-c', script])).toMatchObject({ code, signal: null });
  });

  it('that does not exist ends the daemon with 127 and one line, without sandbox.ready', async () => {
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

  it('that cannot be executed ends the daemon with 126', async () => {
    const path = join(scratchFolder(), 'plain');
    writeFileSync(path, 'not a program');
    chmodSync(path, 0o644);
    expect((await runSandboxd(['--', path])).code).toBe(126);
  });

  it('whose file system does not answer ends the daemon with 126', async () => {
    const spawn = () => Promise.reject(new ApiError('unavailable', 'cwd: the file system does not answer'));
    const supervisor = { spawn } as unknown as Supervisor;
    const config = { command: ['true'], restart: 'never' } as unknown as DaemonConfig;
    await expect(MainCommand.start(supervisor, config, new PassThrough())).rejects.toMatchObject({
      name: 'StartError',
      exit_code: 126,
      message: 'cwd: the file system does not answer',
    });
  });

  it('writes its output to stdout, while stderr carries only the log', async () => {
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

  it('has its start and end reported, and sandbox.killed comes last', async () => {
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

  it('receives SIGHUP and SIGINT from the daemon and decides what they mean', async () => {
    const script = `
      process.on('SIGHUP', () => console.log('hup'));
      process.on('SIGINT', () => process.exit(5));
      setInterval(() => {}, 1000);
      console.log('up');`;
    const program = launch(['--', process.execPath, '-e', script]);
    await eventually(() => expect(program.stdout).toBe('up\n'), WAIT);
    program.child.kill('SIGHUP');
    await eventually(() => expect(program.stdout).toBe('up\nhup\n'), WAIT);
    expect(await program.end('SIGINT')).toEqual({ code: 5, signal: null });
  });

  it('ends with all its descendants on SIGTERM, and sandbox.killed is delivered before the exit', async () => {
    const consumer = await startConsumer();
    const program = launch(['--webhook-url', consumer.url, '--', 'sh', '-c', 'sleep 1000 & echo $!; wait']);
    await eventually(() => expect(program.stdout).toMatch(/^\d+\n$/), WAIT);
    await consumer.arrival('sandbox.ready');
    const descendant = Number(program.stdout);
    expect(isAlive(descendant)).toBe(true);
    expect(await program.end('SIGTERM')).toEqual({ code: 143, signal: null });
    await eventually(() => expect(isAlive(descendant)).toBe(false), WAIT);
    expect(consumer.types.at(-1)).toBe('sandbox.killed');
    expect(consumer.of('process.exited')).toHaveLength(1);
    expect(consumer.of('process.crashed')).toEqual([]);
    expect(consumer.of('sandbox.killed')[0]?.event.payload).toMatchObject({
      reason: 'signal',
      signal: 'SIGTERM',
    });
  });

  it('that ignores SIGTERM is killed after the grace period', async () => {
    const program = launch([
      '--shutdown-grace-ms',
      '300',
      '--',
      'sh',
      '-c',
      'trap "" TERM; echo up; while :; do sleep 1; done',
    ]);
    await eventually(() => expect(program.stdout).toBe('up\n'), WAIT);
    expect(await program.end('SIGTERM')).toEqual({ code: 137, signal: null });
  });

  it('may end while the daemon keeps running, with --keep-alive', async () => {
    const program = await startSandboxd(['--keep-alive', '--', 'true']);
    await eventually(async () => {
      const { data } = await program.call('GET', '/api/v1/processes/main');
      expect(data.state).toBe('exited');
    }, WAIT);
    expect(await program.end('SIGTERM')).toEqual({ code: 0, signal: null });
  });

  it('is required by --keep-alive, which false in the environment turns off', async () => {
    expect((await runSandboxd(['--keep-alive'])).code).toBe(2);
    expect((await runSandboxd(['--', 'true'], { env: { SANDBOXD_KEEP_ALIVE: 'false' } })).code).toBe(0);
  });
});
