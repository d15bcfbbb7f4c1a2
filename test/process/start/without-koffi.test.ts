import { copyFileSync, mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { loadLibc } from '../../../src/base/linux/native.ts';
import { BuiltDaemon } from '../../support/built.ts';
import { eventually } from '../../support/eventually.ts';
import { outputOf, program, start } from '../../support/process/harness.ts';
import { IS_UID_0, needsLook } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

vi.mock('koffi', () => {
  throw new Error('this addon is missing');
});

const ROOT = join(import.meta.dirname, '../../..');

test('without the addon nothing of the C library is there', async () => {
  expect(await loadLibc()).toBe(null);
});

test('processes start in order, lead their groups, and end with their codes', async () => {
  const { supervisor, events } = await start();
  const codes = [0, 1, 7, 127, 255];
  const pids: number[] = [];
  for (const code of codes) {
    const { process } = await supervisor.spawn({ shell: `cut -d " " -f 1,5,6 /proc/$$/stat; exit ${code}` });
    const pid = process.pid as number;
    pids.push(pid);
    expect(await supervisor.finished(process.process_id)).toMatchObject({ state: 'exited', exit_code: code });
    expect((await outputOf(supervisor, process.process_id)).stdout).toBe(`${pid} ${pid} ${pid}\n`);
  }
  await eventually(() => expect(events).toHaveLength(2 * codes.length));
  const of = (type: string) => events.filter((event) => event.event_type === type);
  expect(of('process.started').map(({ payload }) => payload)).toMatchObject(pids.map((pid) => ({ pid })));
  expect(of('process.exited').map(({ payload }) => payload)).toMatchObject(
    codes.map((exit_code) => ({ exit_code })),
  );
});

test('signals reach the whole group, and the one that ends a process is told', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'sleep 1000 & sleep 1000; true' });
  supervisor.signal(process.process_id, 'KILL');
  const killed = { exit_code: 137, signal: 'SIGKILL' };
  expect(await supervisor.finished(process.process_id)).toMatchObject(killed);
  const crash = await supervisor.spawn({ shell: 'kill -KILL $$' });
  expect(await supervisor.finished(crash.process.process_id)).toMatchObject({ state: 'crashed', ...killed });
});

test('directory, variables, signals and files are what was asked for, and nothing else', async () => {
  const { supervisor } = await start();
  const cwd = realpathSync(scratchFolder());
  const { process } = await supervisor.spawn({ command: ['env'], cwd, env: { A: 'b c' } });
  await supervisor.finished(process.process_id);
  const variables = (await outputOf(supervisor, process.process_id)).stdout.trim().split('\n');
  expect(variables.filter((each) => !/^(PATH|SANDBOXD_PROCESS_MARK)=./.test(each)).sort()).toEqual([
    ...['A=b c', `PWD=${cwd}`],
  ]);
  const shell = 'pwd -P; grep -E "^Sig(Blk|Ign)" /proc/self/status; readlink /proc/self/fd/0';
  const seen = await supervisor.spawn({ shell, cwd });
  await supervisor.finished(seen.process.process_id);
  expect((await outputOf(supervisor, seen.process.process_id)).stdout).toBe(
    `${cwd}\nSigBlk:\t${'0'.repeat(16)}\nSigIgn:\t${'0'.repeat(16)}\n/dev/null\n`,
  );
});

test('stdin arrives in order and ends, and a flood of output is whole', async () => {
  const { supervisor } = await start();
  const upper = await supervisor.spawn({ command: program('upper.mjs'), stdin: 'pipe' });
  for (const text of ['one ', 'two ', 'three'])
    await supervisor.writeStdin(upper.process.process_id, { data: [Buffer.from(text)] });
  await supervisor.writeStdin(upper.process.process_id, { data: [], end: true });
  await supervisor.finished(upper.process.process_id);
  expect((await outputOf(supervisor, upper.process.process_id)).stdout).toBe('ONE TWO THREE');
  const flood = await supervisor.spawn({ shell: 'seq 600000; echo end >&2' });
  await supervisor.finished(flood.process.process_id);
  const { stdout, stderr } = await outputOf(supervisor, flood.process.process_id);
  expect([stdout.length, stdout.slice(-7), stderr]).toEqual([4_088_895, '600000\n', 'end\n']);
});

test('what cannot be started is named', async () => {
  const { supervisor } = await start();
  const refused = (request: Parameters<typeof supervisor.spawn>[0]) =>
    expect(supervisor.spawn(request)).rejects;
  await refused({ command: ['no-such-program'] }).toMatchObject({ details: { field: 'command' } });
  await refused({ command: ['true'], cwd: '/no/such' }).toMatchObject({ details: { field: 'cwd' } });
  const env = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`V${i}`, 'x'.repeat(100_000)]));
  await refused({ command: ['true'], env }).toMatchObject({ message: expect.stringContaining('too long') });
  await refused({ command: ['true'], pty: { cols: 80, rows: 24 } }).toMatchObject({
    message: expect.stringContaining('koffi'),
    details: { field: 'pty' },
  });
});

test.runIf(IS_UID_0)('a process of another account has its ids, and no others', async () => {
  const { supervisor } = await start();
  const { process } = await supervisor.spawn({ shell: 'id -u; id -g; id -G', cwd: '/', user: 'nobody' });
  expect(await supervisor.finished(process.process_id)).toMatchObject({ exit_code: 0 });
  expect((await outputOf(supervisor, process.process_id)).stdout).toBe('65534\n65534\n65534\n');
});

/** The built daemon in a folder of its own, which finds these packages, without the files that `is_left_out` names. */
function copyOfBuild(packages: string[], is_left_out: (file: string) => boolean): string {
  const folder = scratchFolder();
  mkdirSync(join(folder, 'dist'));
  for (const { name } of readdirSync(join(ROOT, 'dist'), { withFileTypes: true }).filter((e) => e.isFile()))
    if (!is_left_out(name)) copyFileSync(join(ROOT, 'dist', name), join(folder, 'dist', name));
  for (const name of packages) {
    mkdirSync(join(folder, 'node_modules', name, '..'), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  }
  return join(folder, 'dist/sandboxd.cjs');
}

async function endOf(daemon: BuiltDaemon, request: object): Promise<unknown> {
  const { process_id } = await daemon.ask('POST', '/processes', request);
  return daemon.ask('GET', `/processes/${process_id}/wait?for=exit`);
}

test('the built daemon starts processes without the addon, and adopts them', async () => {
  needsLook();
  const sandboxd = copyOfBuild(['better-sqlite3', '@lydell/node-pty'], () => false);
  const daemon = await BuiltDaemon.startAt(sandboxd);
  expect(await endOf(daemon, { shell: 'exit 4' })).toMatchObject({ exit_code: 4 });
  expect(readFileSync(`/proc/${daemon.pid}/maps`, 'utf8')).not.toContain('koffi');
  const { process_id } = await daemon.ask('POST', '/processes', { shell: 'echo before; sleep 1000' });
  await daemon.end('SIGKILL');
  await daemon.restart();
  expect(await daemon.ask('GET', `/processes/${process_id}`)).toMatchObject({ state: 'running' });
  await daemon.ask('POST', `/processes/${process_id}/signal`, { signal: 'KILL' });
  expect(await daemon.ask('GET', `/processes/${process_id}/wait?for=exit`)).toMatchObject({
    state: 'exited',
  });
});

test('the built daemon needs no execa with the addon: for processes, watches and files', async () => {
  needsLook();
  const packages = ['better-sqlite3', '@lydell/node-pty', 'koffi', '@koromix'];
  const left_out: string[] = [];
  const sandboxd = copyOfBuild(packages, (file) => {
    const is_execa = file.startsWith('execa-');
    if (is_execa) left_out.push(file);
    return is_execa;
  });
  expect(left_out).not.toEqual([]);
  const watched = scratchFolder();
  const daemon = await BuiltDaemon.startAt(sandboxd, '--watch-dir', watched);
  expect(await endOf(daemon, { shell: 'exit 4' })).toMatchObject({ exit_code: 4 });
  expect(await daemon.ask('GET', `/files/list?path=${watched}`)).toMatchObject({ entries: [] });
  expect(readFileSync(`/proc/${daemon.pid}/maps`, 'utf8')).toContain('koffi');
});
