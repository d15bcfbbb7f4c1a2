import { APIError, Client, type Sandbox, verifyWebhookSignature } from 'sandbox0';
import { expect } from 'vitest';
import type { Consumer } from '../consumer.ts';
import { eventually } from '../eventually.ts';
import type { BuiltManager } from './built-manager.ts';

const SECRET = 'a secret of this test';

type Stream = Awaited<ReturnType<Sandbox['cmdStream']>>;

/** What a stream brought, by its source. */
async function gather(stream: Stream): Promise<Record<string, string>> {
  const gathered: Record<string, string> = {};
  for await (const { source, data } of stream.outputs()) gathered[source] = (gathered[source] ?? '') + data;
  return gathered;
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

/**
 * What the published client does with a sandbox, from claim to deletion; `folder` is one that the sandbox may make. With a
 * consumer it also accepts what the sandbox's webhook is sent.
 */
export async function usePublishedClient(
  { url, token }: BuiltManager,
  folder: string,
  consumer?: Consumer,
): Promise<void> {
  const client = new Client({ baseUrl: url, token });
  const sandbox = await client.sandboxes.claim('default', {
    config: {
      envVars: { MODE: 'real' },
      ttl: 600,
      ...(consumer ? { webhook: { url: consumer.url, secret: SECRET } } : {}),
    },
  });
  expect(sandbox.status).toBe('running');

  await commands(sandbox);
  await contexts(sandbox);
  await files(sandbox, folder);
  if (consumer) {
    const { body, headers } = await consumer.arrival('process.exited');
    const signature = String(headers['x-service-signature']);
    expect(verifyWebhookSignature(SECRET, body, signature)).toBe(true);
    expect(verifyWebhookSignature(SECRET, `${body} `, signature)).toBe(false);
  }

  const refreshed = await client.sandboxes.refresh(sandbox.id, { duration: 900 });
  expect(refreshed.expiresAt?.getTime()).toBeGreaterThan(Date.now());
  expect((await client.sandboxes.status(sandbox.id)).status).toBe('running');
  await notBuilt(client, sandbox);
  const paused = await client.sandboxes.pauseAndWait(sandbox.id);
  expect(paused).toMatchObject({ status: 'paused', paused: true });
  await expect(sandbox.cmd('true')).rejects.toMatchObject({ statusCode: 409, code: 'conflict' });
  const resumed = await client.sandboxes.resumeAndWait(sandbox.id);
  expect(resumed.runtimeGeneration).toBe(paused.runtimeGeneration + 1);

  const { sourceSandboxId, sandbox: child } = await client.sandboxes.fork(sandbox.id);
  expect([sourceSandboxId, child.status]).toEqual([sandbox.id, 'paused']);
  await client.sandboxes.resumeAndWait(child.id);
  expect(text(await client.sandbox(child.id).readFile(`${folder}/moved`))).toBe('hello');

  const quotas = await client.quotas.list();
  expect(quotas.find(({ dimension }) => dimension === 'active_sandboxes')?.current).toBe(2);
  expect((await client.quotas.get('sandbox_claims')).kind).toBe('rate');

  for (const { id } of [child, sandbox]) await client.sandboxes.delete(id);
  await eventually(async () => {
    expect((await client.sandboxes.list()).count).toBe(0);
    const { windows } = await client.usage.listWindows({ windowType: 'sandbox.runtime_mib_milliseconds' });
    expect(new Set(windows.map(({ sandboxId }) => sandboxId))).toEqual(new Set([sandbox.id, child.id]));
  }, 120_000);
  const first = await client.usage.listWindows({ limit: 1 });
  const rest = await client.usage.listWindows({ cursor: first.nextCursor });
  expect(first.windows).toHaveLength(1);
  expect(rest.windows.map(({ windowId }) => windowId)).not.toContain(first.windows[0]?.windowId);
  for (const gone of [client.sandboxes.get(child.id), client.sandboxes.status(child.id)]) {
    await expect(gone).rejects.toMatchObject({ statusCode: 404, code: 'not_found' });
  }
}

/** What the client offers and the manager does not have, each by its name. */
async function notBuilt(client: Client, sandbox: Sandbox): Promise<void> {
  for (const [call, feature] of [
    [() => sandbox.listSessions(), 'sessions'],
    [() => sandbox.getServices(), 'services'],
    [() => sandbox.getNetworkPolicy(), 'network policy'],
    [() => client.getSandboxMetricsCatalog(sandbox.id), 'metrics'],
    [() => client.listSandboxObservabilityLogs(sandbox.id), 'observability'],
    [() => client.sandboxes.listRootFSSnapshots(sandbox.id), 'snapshots'],
    [() => client.templates.list(), 'templates'],
    [() => client.volumes.list(), 'volumes'],
    [() => client.credentialSources.list(), 'credential sources'],
  ] as const) {
    const refused = { statusCode: 501, code: 'not_implemented', details: { feature } };
    await expect(call(), feature).rejects.toMatchObject(refused);
  }
  const claim = client.sandboxes.claim('default', { snapshotId: 'snap' });
  await expect(claim).rejects.toMatchObject({ statusCode: 501, details: { field: 'snapshot_id' } });
}

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

async function files(sandbox: Sandbox, folder: string): Promise<void> {
  await sandbox.mkdir(`${folder}/deep/er`, true);
  const watcher = await sandbox.watchFiles(folder, true);
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { event, path } of watcher.events()) seen.push(`${event} ${path}`);
  })();
  expect((await sandbox.writeFile(`${folder}/file`, 'hello')).data).toEqual({ written: true });
  expect(text(await sandbox.readFile(`${folder}/file`))).toBe('hello');
  expect(await sandbox.statFile(`${folder}/file`)).toMatchObject({ name: 'file', type: 'file', size: 5 });
  expect((await sandbox.listFiles(folder)).map(({ name }) => name)).toEqual(['deep', 'file']);
  await sandbox.moveFile(`${folder}/file`, `${folder}/moved`);
  await sandbox.writeFile(`${folder}/deep/er/other`, new Uint8Array([0, 255]));
  expect(await sandbox.readFile(`${folder}/deep/er/other`)).toEqual(new Uint8Array([0, 255]));
  await sandbox.deleteFile(`${folder}/deep/er/other`);
  await eventually(() => expect(seen).toContain(`remove ${folder}/deep/er/other`), 60_000);
  expect(seen).toEqual(expect.arrayContaining([`create ${folder}/file`, `rename ${folder}/moved`]));
  watcher.unsubscribe(watcher.watchId ?? '');
  await watching;
  await expect(sandbox.readFile(`${folder}/file`)).rejects.toMatchObject({
    statusCode: 404,
    code: 'not_found',
  });
}
