import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { ProcessTable } from '../../../src/base/linux/process-table.ts';
import { readProgramName } from '../../../src/base/linux/procfs.ts';
import { LAUNCHES_GIVEN_UP_MAX } from '../../../src/contract/defaults.ts';
import type { ProcessRequest } from '../../../src/contract/processes.ts';
import type { Supervisor } from '../../../src/process/supervisor.ts';
import { eventually } from '../../support/eventually.ts';
import { CAN_HANG, hungMount, unlessHangs } from '../../support/hung-mount.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { outputOf, start } from '../../support/process/harness.ts';
import { IS_UID_0 } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** What a program prints that is started in this way. */
async function printed(supervisor: Supervisor, request: ProcessRequest): Promise<string> {
  const { process } = await supervisor.spawn(request);
  await supervisor.finished(process.process_id);
  return (await outputOf(supervisor, process.process_id)).stdout;
}

function script(folder: string, name: string, text = 'echo "$0"\n', mode = 0o755): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
  chmodSync(join(folder, name), mode);
}

test('a bare name is searched in the PATH of the request, and relative entries are those of its directory', async () => {
  const { supervisor } = await start();
  const cwd = scratchFolder();
  mkdirSync(join(cwd, 'a/tool'), { recursive: true });
  script(join(cwd, 'b'), 'tool', 'no', 0o644);
  script(join(cwd, 'c'), 'tool');
  script(cwd, 'here');
  const run = (command: string, PATH: string) =>
    printed(supervisor, { command: [command], cwd, env: { PATH } });
  expect(await run('tool', `${cwd}/a:${cwd}/b:${cwd}/c`)).toBe(`${cwd}/c/tool\n`);
  expect(await run('tool', 'nowhere:c')).toBe(`${cwd}/c/tool\n`);
  expect(await run('here', '/nowhere:')).toBe(`${cwd}/here\n`);
  expect(await run('here', '.')).toBe(`${cwd}/here\n`);
  expect(await run('./here', '')).toBe(`${cwd}/here\n`);
  const wrong = { command: ['tool'], cwd, env: { PATH: 'a:b' } };
  await expect(supervisor.spawn(wrong)).rejects.toMatchObject({
    message: 'command: tool is not executable',
    exit_code: 126,
  });
  const missing = { command: ['tool'], cwd, env: { PATH: 'a' } };
  await expect(supervisor.spawn(missing)).rejects.toMatchObject({ exit_code: 127 });
});

test.each([
  ['machine code of another computer', '\x7fELF\x02\x02\x01', 'is not executable'],
  ['binary data', 'MZ\0\0', 'is not executable'],
  ['a script whose interpreter is missing', '#!/no/such/interpreter\n', 'its interpreter is not found'],
])('%s is refused by name', async (_, text, problem) => {
  const { supervisor } = await start();
  const folder = scratchFolder();
  script(folder, 'program', text);
  await expect(supervisor.spawn({ command: [join(folder, 'program')] })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining(problem),
    details: { field: 'command', exit_code: 126 },
  });
});

test.runIf(IS_UID_0)(
  'a directory that only the daemon may enter, or only the account, is entered; a program is searched with the rights of the account',
  async () => {
    const { supervisor } = await start();
    const [closed, open] = [scratchFolder(), scratchFolder()];
    chmodSync(closed, 0o700);
    chmodSync(open, 0o755);
    script(closed, 'tool', 'echo closed\n');
    script(open, 'tool', 'echo open\n');
    const env = { PATH: `${closed}:${open}` };
    expect(await printed(supervisor, { command: ['tool'], cwd: closed, env, user: 'nobody' })).toBe('open\n');
    expect(await printed(supervisor, { command: ['tool'], cwd: closed, env })).toBe('closed\n');
  },
);

/** A supervisor whose clock stands still, a mount that hangs, and a file that its program would make. */
async function hanging() {
  const clock = new ManualClock();
  const harness = await start({}, clock);
  const ran = join(scratchFolder(), 'ran');
  const mount = await hungMount({
    'folder/file': { text: '', mode: 0o644 },
    program: { text: `#!/bin/sh\necho > ${ran}\n`, mode: 0o755 },
  });
  script(dirname(ran), 'script', `#!${mount.path}/program\n`);
  await mount.hang();
  return { ...harness, clock, mount, ran, path: mount.path };
}

const table = new ProcessTable(systemClock, 'MARK');

/** The launchers of this process that have not become their programs. */
async function launchers(): Promise<number[]> {
  const children = [...(await table.readAll()).values()].filter(({ parent }) => parent === process.pid);
  return children.flatMap(({ pid }) => (/^(cwd|path \d+|program)$/.test(readProgramName(pid)) ? pid : []));
}

/** Waits for what waits for the clock in small steps. */
async function settled<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let is_over = false;
  void promise.finally(() => {
    is_over = true;
  });
  await eventually(async () => {
    await clock.advance(5);
    expect(is_over).toBe(true);
  });
  return promise;
}

type Hang = Awaited<ReturnType<typeof hanging>>;

const PLACES: [string, string, (hang: Hang) => ProcessRequest, (hang: Hang) => string][] = [
  [
    'directory',
    'cwd',
    ({ path }) => ({ command: ['true'], cwd: `${path}/folder` }),
    ({ path }) => `${path}/folder`,
  ],
  ['program', 'command', ({ path }) => ({ command: [`${path}/program`] }), ({ path }) => `${path}/program`],
  [
    'program at a terminal',
    'command',
    ({ path }) => ({ command: [`${path}/program`], pty: { cols: 80, rows: 24 } }),
    ({ path }) => `${path}/program`,
  ],
  [
    'folder of PATH',
    'command',
    ({ path }) => ({ command: ['true'], env: { PATH: `/nowhere:${path}:/bin` } }),
    ({ path }) => path,
  ],
  [
    'interpreter',
    'command',
    ({ ran }) => ({ command: [join(dirname(ran), 'script')] }),
    ({ ran }) => join(dirname(ran), 'script'),
  ],
];

test.runIf(CAN_HANG).each(PLACES)(
  `a %s that hangs holds its own start alone, which is given up after 10 s and never runs${unlessHangs}`,
  async (_, field, requestOf, pathOf) => {
    const hang = await hanging();
    const { supervisor, mount, clock, events, directory, ran } = hang;
    const failed = supervisor.spawn({ ...requestOf(hang), process_id: 'p' }).catch((error) => error);
    await eventually(async () => expect(await mount.waiting()).toBe(1));
    expect((await supervisor.spawn({ command: ['true'] })).created).toBe(true);
    await clock.advance(10_000);
    expect(await failed).toMatchObject({ code: 'unavailable', details: { field, path: pathOf(hang) } });
    expect(readdirSync(directory)).not.toContain('p');
    expect((await supervisor.spawn({ command: ['true'], process_id: 'p' })).created).toBe(true);
    expect(await launchers()).toHaveLength(1);
    await mount.answer();
    await eventually(async () => expect(await launchers()).toEqual([]));
    expect(existsSync(ran)).toBe(false);
    expect(events.filter(({ event_type }) => event_type === 'process.started')).toHaveLength(2);
  },
);

test.runIf(CAN_HANG)(
  `a pause waits a second for a start that hangs, and a stop not at all${unlessHangs}`,
  async () => {
    const { supervisor, mount, clock, path } = await hanging();
    const begin = () =>
      supervisor.spawn({ command: ['true'], cwd: `${path}/folder` }).catch((error) => error);
    const first = begin();
    await eventually(async () => expect(await mount.waiting()).toBe(1));
    const paused = supervisor.pause();
    await eventually(() => expect(supervisor.is_paused).toBe(true));
    await clock.advance(1_000);
    await settled(clock, paused);
    expect(await first).toMatchObject({ code: 'conflict' });
    await settled(clock, supervisor.resume());
    const second = begin();
    await eventually(async () => expect(await launchers()).toHaveLength(2));
    await supervisor.stop();
    expect(await second).toMatchObject({ code: 'shutting_down' });
  },
);

test.runIf(CAN_HANG)(
  `a restart that hangs counts as a failed one and is tried again, but not while it still hangs; a removal ends it at once${unlessHangs}`,
  async () => {
    const { supervisor, mount, clock, path } = await hanging();
    await mount.answer();
    const { process } = await supervisor.spawn({
      command: ['false'],
      cwd: `${path}/folder`,
      restart: { policy: 'always', backoff_ms: 1_000 },
    });
    const { process_id } = process;
    await eventually(async () => expect((await supervisor.get(process_id)).state).toBe('restarting'));
    await mount.hang();
    await clock.advance(1_500);
    await eventually(async () => expect(await mount.waiting()).toBe(1));
    await clock.advance(10_000);
    await eventually(async () => expect((await supervisor.get(process_id)).restart_count).toBe(1));
    await clock.advance(5_000);
    await eventually(async () => expect((await supervisor.get(process_id)).restart_count).toBe(2));
    expect(await launchers()).toHaveLength(1);
    await mount.answer();
    await eventually(async () => expect(await launchers()).toEqual([]));
    await mount.hang();
    await clock.advance(10_000);
    await eventually(async () => expect(await mount.waiting()).toBe(1));
    expect(await supervisor.remove(process_id)).toMatchObject({ state: 'exited' });
  },
);

test.runIf(CAN_HANG)(
  `64 starts that cannot end are kept, and further ones are refused${unlessHangs}`,
  async () => {
    const { supervisor, mount, clock, path } = await hanging();
    const failed = Array.from({ length: LAUNCHES_GIVEN_UP_MAX }, (_, index) =>
      supervisor.spawn({ command: ['true'], cwd: `${path}/folder${index}` }).catch(({ code }) => code),
    );
    await eventually(async () => expect(await mount.waiting()).toBe(LAUNCHES_GIVEN_UP_MAX));
    expect((await supervisor.spawn({ command: ['true'] })).created).toBe(true);
    await clock.advance(10_000);
    expect(new Set(await Promise.all(failed))).toEqual(new Set(['unavailable']));
    await expect(supervisor.spawn({ command: ['true'] })).rejects.toMatchObject({
      code: 'too_many_requests',
    });
    await mount.answer();
    await eventually(async () => expect((await supervisor.spawn({ command: ['true'] })).created).toBe(true));
  },
);
