import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { invalidField } from '../../../src/contract/errors.ts';
import { SANDBOXES, startScripted } from '../../support/manager/scripted-manager.ts';
import { firstToken, ManagerProgram } from '../../support/manager-program.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const CLAIMS = 40;
const KILLS = 6;
/** The longest that a manager lives after it is ready. */
const LIFE_MS = 60;

describeOnStores('a claim', (fresh) => {
  it('that the runtime refuses leaves nothing behind and its key free', async () => {
    const { runtime, team } = await startScripted(await fresh());
    const key = { 'idempotency-key': 'k' };
    runtime.fail('create', invalidField('webhook.watch_dir', 'is a file'));
    const refused = await team.post(SANDBOXES, {}, key);
    expect(refused.error).toMatchObject({ message: 'config.webhook.watch_dir: is a file' });
    expect(refused.error?.details?.field).toBe('config.webhook.watch_dir');
    expect((await team.get(SANDBOXES)).data.count).toBe(0);
    runtime.fail('create', null);
    expect((await team.post(SANDBOXES, {}, key)).status).toBe(201);
  });

  it('says what persists, also where its key is used again', async () => {
    const { runtime, team } = await startScripted(await fresh());
    runtime.persistence = 'volume';
    const key = { 'idempotency-key': 'k' };
    const { data } = await team.post(SANDBOXES, {}, key);
    expect([data.persistence, (await team.post(SANDBOXES, {}, key)).data]).toEqual(['volume', data]);
    const path = `${SANDBOXES}/${data.sandbox_id}`;
    expect((await team.get(path)).data.persistence).toBe('volume');
    expect((await team.get(SANDBOXES)).data.sandboxes).toMatchObject([{ persistence: 'volume' }]);
    expect((await team.post(`${path}/fork`)).data.sandbox.persistence).toBe('volume');
  });

  it('gives the runtime what the record says, and a fork an identity of its own', async () => {
    const { runtime, team } = await startScripted(await fresh());
    const kinds = ['sandbox.deleted', 'agent.event'];
    const limits = { watch_ignore: ['*.log', 'node_modules'], events: kinds, retry: 'any' };
    const webhook = { url: 'http://127.0.0.1:9/hook', secret: 'a-key', watch_dir: '/a/../b', ...limits };
    const id = await team.claim({ webhook, env_vars: { A: '1' }, resources: { memory: '1Gi', cpu: '0.5' } });
    const spec = {
      team_id: 'team_1',
      template_id: 'default',
      webhook: { url: 'http://127.0.0.1:9/hook', secret: 'a-key', watch_dir: '/b', ...limits },
      env: { A: '1' },
      memory_mib: 1024,
      cpu_millis: 500,
      disk_mib: 10_240,
      network_mode: 'allow-all',
      bandwidth: {
        egress_bandwidth_bytes_per_second: 0,
        ingress_bandwidth_bytes_per_second: 0,
        bandwidth_burst_bytes: 0,
      },
    };
    const record_key = runtime.specs.get(id)?.record_key;
    expect(record_key).toMatch(/^[0-9a-f]{64}$/);
    expect(runtime.specs.get(id)).toMatchObject({ ...spec, sandbox_id: id, record_key });
    await team.call('PUT', `${SANDBOXES}/${id}`, { config: { env_vars: { B: '2' } } });
    expect(runtime.calls.at(-1)).toBe(`change ${id} {"env":{"B":"2"}}`);
    const { data } = await team.post(`${SANDBOXES}/${id}/fork`);
    const child_key = runtime.specs.get(data.sandbox.id)?.record_key;
    expect(child_key).not.toBe(record_key);
    expect(runtime.specs.get(data.sandbox.id)).toMatchObject({
      ...spec,
      record_key: child_key,
      env: { B: '2' },
      sandbox_id: data.sandbox.id,
    });
  });
});

describeOnStores('a manager that is killed at random points of its claims', (fresh) => {
  it('gives one sandbox per key and leaves none half-made', async () => {
    const database = await fresh();
    const options = [
      ...['--database', database],
      ...['--runtime', 'none', '--listen', '127.0.0.1:0', '--secret-key-file', join(scratchFolder(), 'key')],
    ];
    const token = await firstToken(database, 'sandboxes:write');
    let program = await ManagerProgram.start(options);
    const call = async (method: string, headers: Record<string, string> = {}) => {
      const query = method === 'GET' ? '?limit=200' : '';
      const response = await fetch(`${program.url}/api/v1/sandboxes${query}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...headers },
      });
      // biome-ignore lint/suspicious/noExplicitAny: whatever is answered.
      return { status: response.status, data: ((await response.json()) as any).data };
    };
    const given = new Map<string, string>();
    const waiting = Array.from({ length: CLAIMS }, (_, i) => `key-${i}`);
    const claim = async (key: string) => {
      for (;;) {
        const answer = await call('POST', { 'idempotency-key': key }).catch(() => null);
        if (answer?.status === 201) return void given.set(key, answer.data.sandbox_id);
        await sleep(10);
      }
    };
    const killer = (async () => {
      for (let kills = 0; kills < KILLS; kills++) {
        await sleep(Math.random() * LIFE_MS);
        await program.end('SIGKILL');
        program = await ManagerProgram.start(options);
      }
    })();
    const callers = Array.from({ length: 4 }, async () => {
      for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) await claim(key);
    });
    await Promise.all([killer, ...callers]);
    const { data } = await call('GET');
    await program.end('SIGTERM');
    expect(data.sandboxes.map(({ id }: { id: string }) => id).sort()).toEqual([...given.values()].sort());
    expect(new Set(given.values()).size).toBe(CLAIMS);
    expect(data.sandboxes.every(({ status }: { status: string }) => status === 'running')).toBe(true);
  }, 120_000);
});
