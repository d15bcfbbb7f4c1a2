import { APIError, Client, type Sandbox } from 'sandbox0';
import { expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startBuiltManager } from '../support/manager/built-manager.ts';

type Stream = Awaited<ReturnType<Sandbox['cmdStream']>>;

/** What a stream brought, by its source. */
async function gather(stream: Stream): Promise<Record<string, string>> {
  const gathered: Record<string, string> = {};
  for await (const { source, data } of stream.outputs()) gathered[source] = (gathered[source] ?? '') + data;
  return gathered;
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

it('the published client of this API works unchanged, from claim to deletion', async () => {
  const { url, token } = await startBuiltManager();
  const client = new Client({ baseUrl: url, token });
  const sandbox = await client.sandboxes.claim('default', {
    config: { envVars: { MODE: 'real' }, ttl: 600 },
  });
  expect(sandbox.status).toBe('running');

  await commands(sandbox);
  await contexts(sandbox);
  await files(sandbox);

  const paused = await client.sandboxes.pauseAndWait(sandbox.id);
  expect(paused).toMatchObject({ status: 'paused', paused: true });
  await expect(sandbox.cmd('true')).rejects.toMatchObject({ statusCode: 409, code: 'conflict' });
  const resumed = await client.sandboxes.resumeAndWait(sandbox.id);
  expect(resumed.runtimeGeneration).toBe(paused.runtimeGeneration + 1);

  const { sourceSandboxId, sandbox: child } = await client.sandboxes.fork(sandbox.id);
  expect([sourceSandboxId, child.status]).toEqual([sandbox.id, 'paused']);
  await client.sandboxes.resumeAndWait(child.id);
  expect(text(await client.sandbox(child.id).readFile('/work/moved'))).toBe('hello');

  const quotas = await client.quotas.list();
  expect(quotas.find(({ dimension }) => dimension === 'active_sandboxes')?.current).toBe(2);
  expect((await client.quotas.get('sandbox_claims')).kind).toBe('rate');

  for (const { id } of [child, sandbox]) await client.sandboxes.delete(id);
  await eventually(async () => {
    expect((await client.sandboxes.list()).count).toBe(0);
    const { windows } = await client.usage.listWindows({ windowType: 'sandbox.runtime_mib_milliseconds' });
    expect(new Set(windows.map(({ sandboxId }) => sandboxId))).toEqual(new Set([sandbox.id, child.id]));
  }, 120_000);
}, 120_000);

async function commands(sandbox: Sandbox): Promise<void> {
  const done = await sandbox.cmd('sh -c "echo $MODE; echo warn >&2; exit 3"', { cwd: '/tmp' });
  expect(done).toMatchObject({ stdout: 'real\n', stderr: 'warn\n', exitCode: 3, state: 'stopped' });
  expect((await sandbox.cmd('env', { envVars: { ONE: 'more' } })).stdout).toContain('ONE=more');
  await expect(sandbox.cmd('no-such-program')).rejects.toMatchObject({
    statusCode: 400,
    code: 'invalid_request',
  });
  await expect(sandbox.run('python', 'print(1)')).rejects.toMatchObject({
    statusCode: 501,
    code: 'not_implemented',
  });

  const stream = await sandbox.cmdStream('sh -c "echo out; echo err >&2; exit 5"');
  expect(await gather(stream)).toEqual({ stdout: 'out\n', stderr: 'err\n' });
  expect(await stream.wait()).toMatchObject({ exitCode: 5, state: 'stopped' });

  const talk = await sandbox.cmdStream('head -n 1');
  talk.sendInput('typed\n');
  expect(await gather(talk)).toEqual({ stdout: 'typed\n' });
  const ended = await sandbox.cmdStream('sleep 60');
  ended.sendSignal('TERM');
  expect((await ended.wait()).exitCode).toBe(143);
}

async function contexts(sandbox: Sandbox): Promise<void> {
  const shell = { type: 'cmd' as const, cmd: { command: ['sh'] }, cwd: '/tmp' };
  const made = await sandbox.createContext(shell);
  expect(made).toMatchObject({ type: 'cmd', cwd: '/tmp', running: true, paused: false });
  expect((await sandbox.listContexts()).map(({ id }) => id)).toContain(made.id);
  await sandbox.contextInput(made.id, 'echo one\n');
  expect(await sandbox.contextExec(made.id, 'echo two; exit 4\n')).toMatchObject({
    stdout: 'one\ntwo\n',
    exitCode: 4,
  });
  expect(await sandbox.getContext(made.id)).toMatchObject({
    running: false,
    exitCode: 4,
    stdout: 'one\ntwo\n',
  });

  const restarted = await sandbox.restartContext(made.id);
  expect(restarted).toMatchObject({ id: made.id, running: true });
  const { data: signaled } = await sandbox.contextSignal(made.id, 'KILL');
  expect(signaled).toEqual({ signaled: true });
  await eventually(async () => expect((await sandbox.getContext(made.id)).exitCode).toBe(137));

  const terminal = await sandbox.createContext({ ...shell, ptySize: { rows: 24, cols: 80 } });
  expect((await sandbox.contextResize(terminal.id, 30, 99)).data).toEqual({ resized: true });
  await sandbox.contextInput(terminal.id, 'stty size\n');
  await eventually(async () => {
    expect((await sandbox.getContext(terminal.id)).outputRaw).toContain('30 99');
  });
  expect((await sandbox.deleteContext(terminal.id)).data).toEqual({ deleted: true });
  expect((await sandbox.getContext(terminal.id)).running).toBe(false);
  await expect(sandbox.getContext('proc_nobody')).rejects.toBeInstanceOf(APIError);
}

async function files(sandbox: Sandbox): Promise<void> {
  await sandbox.mkdir('/work/deep/er', true);
  const watcher = await sandbox.watchFiles('/work', true);
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { event, path } of watcher.events()) seen.push(`${event} ${path}`);
  })();
  expect((await sandbox.writeFile('/work/file', 'hello')).data).toEqual({ written: true });
  expect(text(await sandbox.readFile('/work/file'))).toBe('hello');
  expect(await sandbox.statFile('/work/file')).toMatchObject({ name: 'file', type: 'file', size: 5 });
  expect((await sandbox.listFiles('/work')).map(({ name }) => name)).toEqual(['deep', 'file']);
  await sandbox.moveFile('/work/file', '/work/moved');
  await sandbox.writeFile('/work/deep/er/other', new Uint8Array([0, 255]));
  expect(await sandbox.readFile('/work/deep/er/other')).toEqual(new Uint8Array([0, 255]));
  await sandbox.deleteFile('/work/deep/er/other');
  await eventually(() => expect(seen).toContain('remove /work/deep/er/other'), 20_000);
  expect(seen).toEqual(expect.arrayContaining(['create /work/file', 'rename /work/moved']));
  watcher.unsubscribe(watcher.watchId ?? '');
  await watching;
  await expect(sandbox.readFile('/work/file')).rejects.toMatchObject({ statusCode: 404, code: 'not_found' });
}
