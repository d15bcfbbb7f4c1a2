import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  createDaemonClient,
  createManagerClient,
  type ManagerClient,
  type TakeOutput,
} from '../../src/client/client.ts';
import { FrailLine } from '../support/client/frail-line.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { DaemonRuntime } from '../support/manager/daemon-runtime.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const ROOT = resolve(import.meta.dirname, '../..');

async function startTeam(): Promise<{ manager: ManagerClient; url: string; token: string }> {
  const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
  const { manager, client } = await startManager(database, { runtime: new DaemonRuntime() });
  const { token } = await client('team-a', 'sandboxes:write');
  return { manager: createManagerClient({ url: manager.url, token }), url: manager.url, token };
}

async function startSandbox() {
  const { port, token } = await startDaemon();
  return { sandbox: createDaemonClient({ url: `http://127.0.0.1:${port}`, token }).sandbox, port, token };
}

it('a command runs to its end, with what it wrote, however it exits', async () => {
  const { sandbox } = await startSandbox();
  const shell = await sandbox.run('echo hi; echo careful >&2; exit 3');
  expect(shell).toMatchObject({ exit_code: 3, stdout: 'hi\n', stderr: 'careful\n', stdout_truncated: false });
  const folder = scratchFolder();
  const options = { stdin: 'b\na\n', cwd: folder, env: { LC_ALL: 'C' }, name: 'sorter' };
  const sorted = await sandbox.run(['sort'], options);
  expect([sorted.exit_code, sorted.stdout, sorted.process.name]).toEqual([0, 'a\nb\n', 'sorter']);
  expect((await sandbox.run('exec 0<&-; exit 0', { stdin: 'x'.repeat(2 ** 20) })).exit_code).toBe(0);
  expect((await sandbox.run('sleep 60', { timeout_ms: 50 })).process.timed_out).toBe(true);
  await expect(sandbox.run(['no-such-program'])).rejects.toMatchObject({
    code: 'invalid_request',
    details: { exit_code: 127 },
  });
});

it('of a long output the end is kept, over broken connections, and each byte of it is seen once', async () => {
  const { port, token } = await startSandbox();
  const line = await FrailLine.to(port, 2 ** 20);
  const { sandbox } = createDaemonClient({ url: line.url, token });
  let [seen, gaps] = [0, 0];
  const told: boolean[] = [];
  const { process_id } = await sandbox.POST('/api/v1/processes', {
    body: { shell: 'head -c 4000000 /dev/zero; echo end' },
    query: { lossless: true },
  });
  const options = { lossless: true, onConnection: (each: boolean) => told.push(each) };
  const count: TakeOutput = (event) => {
    if (event.type === 'output') seen += event.bytes.length;
    else gaps += 1;
  };
  const process = await sandbox.readOutput(process_id, count, options);
  expect([process.exit_code, seen, gaps]).toEqual([0, 4_000_004, 0]);
  expect(line.breaks).toBeGreaterThan(1);
  expect(told).toEqual(told.map((_, index) => index % 2 === 0));

  const direct = createDaemonClient({ url: `http://127.0.0.1:${port}`, token }).sandbox;
  const long = await direct.run('head -c 17825792 /dev/zero; echo end');
  const { stdout, stdout_truncated, stderr_truncated } = long;
  expect([stdout.length, stdout.slice(-5), stdout_truncated, stderr_truncated]).toEqual([
    16 * 2 ** 20,
    '\0end\n',
    true,
    false,
  ]);
});

it('a caller who gives up has the command sent SIGTERM, and is told the own reason', async () => {
  const { sandbox } = await startSandbox();
  const leaving = new AbortController();
  const waits = 'trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done';
  const ran = sandbox.run(waits, {
    signal: leaving.signal,
    onOutput: () => leaving.abort(new Error('enough')),
  });
  await expect(ran).rejects.toThrow('enough');
  const [listed] = (await sandbox.GET('/api/v1/processes')).processes;
  const path = { process_id: listed?.process_id ?? '' };
  const ended = await sandbox.readOutput(path.process_id, () => {});
  expect(ended.exit_code).toBe(7);
});

it('a file is read and written whole, and none is longer than its reader takes', async () => {
  const { files } = (await startSandbox()).sandbox;
  const path = join(scratchFolder(), 'a/b');
  const bytes = new Uint8Array([0, 255, 10]);
  expect(await files.write(path, bytes, { parents: true, mode: '0600' })).toMatchObject({ size: 3 });
  expect(await files.read(path)).toEqual(bytes);
  await files.write(path, 'grün\n');
  expect(await files.readText(path)).toBe('grün\n');
  expect(await files.readText(path, { max_bytes: 6 })).toBe('grün\n');
  await expect(files.read(path, { max_bytes: 5 })).rejects.toMatchObject({ code: 'bad_answer' });
  await expect(files.read(`${path}c`)).rejects.toMatchObject({ code: 'not_found' });
});

it('a claimed sandbox is deleted at the end of its block, also where that throws, and otherwise kept', async () => {
  const { manager } = await startTeam();
  let id = '';
  const block = async () => {
    await using sandbox = await manager.claim({ config: { ttl: 3600 } });
    id = sandbox.id;
    expect((await sandbox.run('echo in')).stdout).toBe('in\n');
    throw new Error('the block fails');
  };
  await expect(block()).rejects.toThrow('the block fails');
  await expect(manager.sandbox(id).run('true')).rejects.toMatchObject({ code: 'not_found' });

  const kept = await manager.claim();
  await kept.pause();
  const path = { sandbox_id: kept.id };
  expect((await manager.GET('/api/v1/sandboxes/{sandbox_id}', { path })).status).toBe('paused');
  await kept.resume();
  expect((await kept.run('exit 5')).exit_code).toBe(5);
  await kept.delete();
  await kept[Symbol.asyncDispose]();
  await expect(manager.sandbox('sbx_019a2b3c-4d5e-7f60-8123-000000000001').delete()).rejects.toMatchObject({
    code: 'not_found',
  });
});

it("a daemon's own sandbox can be neither paused nor deleted", async () => {
  const { sandbox } = createDaemonClient();
  for (const verb of ['pause', 'resume', 'delete']) expect(verb in sandbox).toBe(false);
  // @ts-expect-error a daemon has no such verb
  expect(() => sandbox.pause()).toThrow(TypeError);
});

it('a server that says nothing is given up where a call says when', async () => {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const call = createManagerClient({ url }).GET('/healthz', { timeout_ms: 20, retry: false });
  await expect(call).rejects.toMatchObject({ code: 'unreachable' });
});

it('a header that cannot be sent is named, and nothing is sent', async () => {
  const call = createManagerClient({ url: 'http://127.0.0.1:9' }).GET('/healthz', { headers: { a: 'b\nc' } });
  await expect(call).rejects.toMatchObject({ code: 'invalid_request', details: { field: 'headers.a' } });
});

it('the first example of the manual does what it shows', async () => {
  const { url, token } = await startTeam();
  const manual = readFileSync(join(ROOT, 'src/client/README.md'), 'utf8');
  const [, code = ''] = /^```ts\n(.*?)^```$/ms.exec(manual) ?? [];
  const file = join(scratchFolder(), 'example.mts');
  const own = code
    .replace("'sandboxd/client'", JSON.stringify(join(ROOT, 'src/client/client.ts')))
    .replace("'http://127.0.0.1:8080', token", JSON.stringify(url).concat(', token'));
  writeFileSync(file, `const token = ${JSON.stringify(token)};\n${own}`);
  const shown: unknown[][] = [];
  const log = vi.spyOn(console, 'log').mockImplementation((...values) => void shown.push(values));
  onTestFinished(() => log.mockRestore());
  await import(file);
  expect(shown).toEqual([[4, '1\n2\n3\n', 'sorted\n'], ['output'], ['3\n', '3\n1\n2\n', 6]]);
});
