import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { ManagerProgram, runManagerCommand } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 300_000 });

const LATER = { timeout: 60_000, interval: 50 };
/** What `/readyz` answers. */
interface Ready {
  data: { degraded?: string[] };
}

const SECRET = 'a key made for this test';
const why = spawnSync('sqlite3', ['--version']).status === 0 ? null : 'sqlite3 is not installed';

/** What the manual says of a restore, step by step, with sandboxes that really run. */
async function scene() {
  const folder = scratchFolder();
  const [database, data_dir] = [join(folder, 'manager.db'), join(folder, 'data')];
  const place = ['--data-dir', data_dir, '--secret-key-file', join(folder, 'key'), '--runtime', 'local'];
  const options = [
    ...['--listen', '127.0.0.1:0', ...place, '--network', 'none', '--allow-webhook-cidr', '127.0.0.0/8'],
    ...['--node-memory', '1Gi', '--node-cpus', '8'],
  ];
  const at = (path: string) => ['--database', `sqlite:${path}`];
  const running: { manager: ManagerProgram | null } = { manager: null };
  const start = async () => {
    running.manager = await ManagerProgram.start([...options, ...at(database)]);
  };
  const stop = async () => {
    await running.manager?.end('SIGTERM');
    running.manager = null;
  };
  const orphans = (...args: string[]) => runManagerCommand('orphans', ...args, ...place, ...at(database));
  await start();
  const scopes = ['--scope', 'sandboxes:write', '--scope', 'webhooks:read'];
  const token = await runManagerCommand('token', 'create', '--team', 'team_1', ...scopes, ...at(database));
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${running.manager?.url}/api/v1/sandboxes${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
    return { status: response.status, ...((await response.json()) as any) };
  };
  const claim = async (config: object) => (await call('POST', '', { config })).data.sandbox_id as string;
  const degraded = async () =>
    ((await (await fetch(`${running.manager?.url}/readyz`)).json()) as Ready).data.degraded?.join() ?? '';
  onTestFinished(async () => {
    if (running.manager === null) await start();
    for (const { sandbox_id } of JSON.parse(await orphans('list', '--json')).orphans)
      await orphans('end', sandbox_id);
    const { data } = await call('GET', '');
    for (const { id } of data.sandboxes) await call('DELETE', `/${id}`);
    await eventually(async () => expect((await call('GET', '')).data.sandboxes).toEqual([]), LATER);
    await eventually(() => expect(namesIn(data_dir)).toEqual([]), LATER);
    await stop();
  });
  return { folder, database, data_dir, options, at, start, stop, orphans, call, claim, degraded, running };
}

function namesIn(data_dir: string): string[] {
  return execFileSync('ls', [data_dir], { encoding: 'utf8' }).split('\n').filter(Boolean);
}

describe.skipIf(why !== null)('a restore, as the manual says it', () => {
  it('leaves sandboxes that are told, counted and cut off, and that an operator adopts or ends without a loss', async () => {
    const { folder, database, data_dir, options, at, start, stop, orphans, call, claim, degraded, running } =
      await scene();
    const consumer = await startConsumer();
    const webhook = { url: consumer.url, secret: SECRET };
    const small = { resources: { memory: '128Mi' } };
    const old = await claim(small);
    const copy = join(folder, 'backup.db');
    execFileSync('sqlite3', [database, '.timeout 5000', `.backup '${copy}'`]);
    consumer.answer = (_, response) => response.writeHead(503).end();
    const kept = await claim({
      ...{ webhook, ttl: 600, metadata: { job: 'nightly' }, env_vars: { A: '1' } },
      resources: { memory: '512Mi' },
    });
    const ended = await claim({ ...small, webhook, ttl: 600 });
    for (const id of [kept, ended]) {
      const shell = `sandboxctl publish '{"of":"${id}"}'`;
      const ran = await call('POST', `/${id}/processes?wait_ms=60000`, { shell });
      expect(ran.data.exit_code).toBe(0);
    }
    await stop();
    for (const suffix of ['', '-wal', '-shm', '-ballast']) rmSync(database + suffix, { force: true });
    copyFileSync(copy, database);
    await start();

    expect((await call('GET', `/${kept}`)).status).toBe(404);
    expect((await call('GET', `/${old}`)).data.status).toBe('running');
    const refused = await call('POST', '', { config: { resources: { memory: '512Mi' } } });
    expect([refused.status, refused.error.details.resource]).toEqual([503, 'memory']);
    await eventually(
      async () => expect(await degraded()).toContain('2 sandboxes here are not recorded'),
      LATER,
    );
    const metrics = await (await fetch(`${running.manager?.url}/metrics`)).text();
    expect(metrics).toContain('sandbox_manager_runtime_orphans 2\n');
    await eventually(async () => {
      const listed = JSON.parse(await orphans('list', '--json'));
      const here = { team_id: 'team_1', state: 'running', pending_events: expect.any(Number) };
      expect(listed).toMatchObject({
        unseen: [],
        orphans: [
          { ...here, sandbox_id: kept, memory_mib: 512 },
          { ...here, sandbox_id: ended, memory_mib: 128 },
        ],
      });
      for (const { pending_events } of listed.orphans) expect(pending_events).toBeGreaterThan(1);
    }, LATER);

    consumer.deliveries.length = 0;
    consumer.answer = (_, response) => response.writeHead(204).end();
    const kindsOf = (id: string) =>
      consumer.deliveries.flatMap(({ body }) => {
        const { sandbox_id, event_type } = JSON.parse(body);
        return sandbox_id === id ? [event_type] : [];
      });
    expect(await orphans('adopt', kept)).toContain('is recorded again');
    expect(kindsOf(ended)).toEqual([]);
    expect((await call('GET', `/${kept}`)).data).toMatchObject({
      ...{ status: 'running', template_id: 'default', metadata: { job: 'nightly' }, env_names: ['A'] },
      webhook: { url: consumer.url, has_secret: true },
    });
    await eventually(() => expect(kindsOf(kept)).toContain('agent.event'), LATER);
    await expect(orphans('adopt', kept)).rejects.toMatchObject({ exitCode: 1 });

    expect(await orphans('end', ended)).toContain('is being ended');
    await eventually(() => expect(kindsOf(ended)).toContain('sandbox.deleted'), LATER);
    await eventually(() => {
      const kinds = kindsOf(ended);
      expect(kinds).toEqual(expect.arrayContaining(['sandbox.ready', 'agent.event', 'sandbox.killed']));
      expect(kinds.filter((kind) => kind === 'sandbox.deleted')).toHaveLength(1);
    }, LATER);
    await eventually(() => expect(existsSync(join(data_dir, ended))).toBe(false), LATER);
    await eventually(async () => expect(await degraded()).toBe(''), LATER);
    expect(consumer.unsigned(SECRET)).toEqual([]);

    // An empty database beside the full directory.
    await stop();
    const other = ManagerProgram.begin([...options, ...at(join(folder, 'empty.db'))]);
    await other.ended;
    expect(other.child.exitCode).toBe(2);
    expect(other.log).toContain(`${data_dir} holds 2 sandboxes`);
    expect(other.log).toContain('--adopt-data-dir');
    await start();

    // Of sandboxes whose files are elsewhere nothing is concluded: a deletion waits for them, or until they are given up.
    const aside = (id: string) => join(folder, `aside-${id}`);
    for (const id of [old, kept]) renameSync(join(data_dir, id), aside(id));
    await eventually(async () => expect(await degraded()).toContain('2 recorded sandboxes'), LATER);
    expect((await call('GET', `/${old}`)).data.status).toBe('running');
    expect((await call('DELETE', `/${old}`)).success).toBe(true);
    expect(JSON.parse(await orphans('list', '--json'))).toEqual({ orphans: [], unseen: [old, kept] });
    await orphans('give-up', kept);
    await eventually(
      async () => expect((await call('GET', `/${kept}?include_deleted=true`)).data.status).toBe('deleted'),
      LATER,
    );
    expect((await call('GET', `/${old}`)).data.status).toBe('terminating');
    for (const id of [old, kept]) renameSync(aside(id), join(data_dir, id));
    await eventually(
      async () => expect((await call('GET', `/${old}?include_deleted=true`)).data.status).toBe('deleted'),
      LATER,
    );
    await expect(orphans('give-up', old)).rejects.toMatchObject({ exitCode: 1 });
    await orphans('end', kept);
    await eventually(() => expect(namesIn(data_dir)).toEqual([]), LATER);
    expect(kindsOf(kept).filter((kind) => kind === 'sandbox.deleted')).toHaveLength(1);
  });
});
