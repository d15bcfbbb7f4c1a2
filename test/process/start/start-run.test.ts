import { expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { outputOf, start } from '../../support/process/harness.ts';
import { IS_UID_0 } from '../../support/rights.ts';

test('200 starts at once all end and are all reported', async () => {
  const { supervisor, events } = await start();
  const started = await Promise.all(
    Array.from({ length: 200 }, (_, i) => supervisor.spawn({ shell: `echo ${i}; exit ${i % 7}` })),
  );
  const ended = await Promise.all(started.map(({ process }) => supervisor.finished(process.process_id)));
  expect(ended.map(({ exit_code }) => exit_code)).toEqual(started.map((_, i) => i % 7));
  await eventually(() => expect(events).toHaveLength(400));
  for (const [i, { process }] of started.entries()) {
    expect((await outputOf(supervisor, process.process_id)).stdout).toBe(`${i}\n`);
  }
});

test("children get the plain environment, the request's variables and the mark, and nothing of the daemon's environment", async () => {
  const { supervisor } = await start({ environment: () => ({ PATH: '/usr/bin:/bin', PLAIN: 'p' }) });
  process.env.DAEMON_SECRET_OF_TEST = 'secret';
  const { process: view } = await supervisor.spawn({ command: ['env'], env: { ASKED: 'a' }, cwd: '/usr' });
  await supervisor.finished(view.process_id);
  const lines = (await outputOf(supervisor, view.process_id)).stdout.trim().split('\n').sort();
  expect(lines).toEqual([
    'ASKED=a',
    'PATH=/usr/bin:/bin',
    'PLAIN=p',
    'PWD=/usr',
    expect.stringMatching(/^SANDBOXD_PROCESS_MARK=/),
  ]);
});

test.each([
  ['through pipes', {}],
  ['at a terminal', { pty: { cols: 80, rows: 24 } }],
])(
  "PWD %s is the process's own directory, at each of its starts, unless the request has another",
  async (_, how) => {
    const { supervisor } = await start({
      environment: () => ({ PATH: '/usr/bin:/bin', PWD: '/of/the/sandbox', OLDPWD: '/before' }),
    });
    const said = async (process_id: string) => {
      await supervisor.finished(process_id);
      return (await outputOf(supervisor, process_id)).stdout.replaceAll('\r', '');
    };
    const command: [string, ...string[]] = ['printenv', 'PWD'];
    const { process } = await supervisor.spawn({ command, cwd: '/usr/lib', ...how });
    expect(await said(process.process_id)).toBe('/usr/lib\n');
    await supervisor.restart(process.process_id);
    expect(await said(process.process_id)).toBe('/usr/lib\n');
    const other = await supervisor.spawn({ command, cwd: '/usr/lib', env: { PWD: '/asked' }, ...how });
    expect(await said(other.process.process_id)).toBe('/asked\n');
  },
);

test.runIf(IS_UID_0)("a process can run as another account, without the daemon's groups", async () => {
  const { supervisor } = await start();
  for (const pty of [undefined, { cols: 80, rows: 24 }]) {
    const { process } = await supervisor.spawn({
      shell: 'id -u; id -G; echo $HOME; echo out > /dev/stdout',
      user: 'nobody',
      cwd: '/',
      ...(pty && { pty }),
    });
    await supervisor.finished(process.process_id);
    const { stdout } = await outputOf(supervisor, process.process_id);
    expect(stdout.replaceAll('\r', '')).toBe('65534\n65534\n/nonexistent\nout\n');
  }
});
