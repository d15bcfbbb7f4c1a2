import fc from 'fast-check';
import type { Static } from 'typebox';
import { describe, expect, it } from 'vitest';
import { problemOf } from '../../../src/base/schema.ts';
import { FieldError } from '../../../src/contract/errors.ts';
import { ChangeBody } from '../../../src/contract/sandboxes.ts';
import { NO_BANDWIDTH } from '../../../src/manager/config/bandwidth.ts';
import { changeRequest } from '../../../src/manager/sandboxes/requests.ts';
import { specOf } from '../../../src/manager/sandboxes/sandbox-row.ts';
import { sandboxView } from '../../../src/manager/sandboxes/sandbox-view.ts';
import { startConsumer } from '../../support/consumer.ts';
import { SEAL } from '../../support/manager/outbox.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { SANDBOXES, startScripted } from '../../support/manager/scripted-manager.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';
import { ScriptedRuntime } from '../../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

it('takes variables of at most 64 KiB, in a claim and in a change', async () => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  const most = { A: 'x'.repeat(30_000), B: 'é'.repeat(17_000) };
  const id = await team.claim({ env_vars: most });
  const more = { config: { env_vars: { ...most, C: 'x'.repeat(2_000) } } };
  for (const { status, error } of [
    await team.post(SANDBOXES, more),
    await team.call('PUT', `${SANDBOXES}/${id}`, more),
  ]) {
    expect([status, error?.details?.field]).toEqual([400, 'config.env_vars']);
  }
});

describeOnStores('the metadata of a claim', (fresh) => {
  it('is shown in the record and in lists as it was given, and in no event', async () => {
    const consumer = await startConsumer();
    const { client } = await startManager(await fresh());
    const team = await client('team_1', 'sandboxes:write');
    const most = Object.fromEntries(
      Array.from({ length: 32 }, (_, i) => [`k${i}`.padEnd(63, '.'), 'ü'.repeat(256)]),
    );
    for (const metadata of [{ 'app/tier': 'web', empty: '', fox: '🦊' }, most]) {
      const id = await team.claim({ metadata, webhook: { url: consumer.url } });
      expect((await team.get(`${SANDBOXES}/${id}`)).data.metadata).toEqual(metadata);
      expect((await team.get(SANDBOXES)).data.sandboxes[0].metadata).toEqual(metadata);
    }
    const plain = await team.claim({ webhook: { url: consumer.url } });
    expect((await team.get(`${SANDBOXES}/${plain}`)).data.metadata).toEqual({});
    for (const { id } of (await team.get(SANDBOXES)).data.sandboxes)
      await team.call('DELETE', `${SANDBOXES}/${id}`);
    await consumer.arrival('sandbox.deleted', 3);
    for (const { body } of consumer.deliveries) expect(body).not.toMatch(/metadata|app\/tier/);
  });
});

it.each([
  [{ 'a b': 'x' }, 'config.metadata'],
  [{ '': 'x' }, 'config.metadata'],
  [{ ['k'.repeat(64)]: 'x' }, 'config.metadata'],
  [{ 'a\n': 'x' }, 'config.metadata'],
  [{ a: 'x'.repeat(257) }, 'config.metadata.a'],
  [{ a: 'x\0' }, 'config.metadata.a'],
  [{ a: '\ud800' }, 'config.metadata.a'],
  [{ a: 5 }, 'config.metadata.a'],
  [{ a: null }, 'config.metadata.a'],
  [['a'], 'config.metadata'],
  ['a', 'config.metadata'],
  [Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`k${i}`, ''])), 'config.metadata'],
])('metadata that is no such thing is refused by name: %j', async (metadata, field) => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  const { status, error } = await team.post(SANDBOXES, { config: { metadata } });
  expect([status, error?.details?.field]).toEqual([400, field]);
});

it('a value of what a webhook is limited to that is no such thing is refused by name', async () => {
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`);
  const team = await client('team_1', 'sandboxes:write');
  const globs = [[''], ['/'], ['./'], ['a\0'], ['x'.repeat(257)], Array(101).fill('a'), 'a', [5], null];
  const kinds = [[], ['agent.events'], ['agent.event', 'agent.event'], 'agent.event', [null], {}];
  const retries = ['all', '', 'Any', null, ['any'], true];
  for (const [field, values] of Object.entries({ watch_ignore: globs, events: kinds, retry: retries })) {
    for (const value of values) {
      const webhook = { url: 'http://example.com/', [field]: value };
      const { status, error } = await team.post(SANDBOXES, { config: { webhook } });
      expect([value, status, error?.details?.field]).toEqual([value, 400, `config.webhook.${field}`]);
    }
  }
});

const MOST = Number.MAX_SAFE_INTEGER;

describeOnStores('the network of a claim', (fresh) => {
  it('reaches the runtime and the record, as given or by default; a fork inherits it', async () => {
    const runtime = new ScriptedRuntime();
    runtime.networks.mode = { mode: 'metered', reason: null, block_all: 'network_namespace' };
    const file = { ingress_bandwidth_bytes_per_second: 7, bandwidth_burst_bytes: 100 };
    const { client } = await startManager(await fresh(), { runtime, file });
    const team = await client('team_1', 'sandboxes:write');
    const given = {
      bandwidth: { egress_bandwidth_bytes_per_second: MOST, bandwidth_burst_bytes: 65_535 },
      network: { mode: 'block-all' },
      resources: { disk: '2048Mi' },
    };
    const bandwidth = {
      egress_bandwidth_bytes_per_second: MOST,
      ingress_bandwidth_bytes_per_second: 7,
      bandwidth_burst_bytes: 65_536,
    };
    const id = await team.claim(given);
    const { sandbox } = (await team.post(`${SANDBOXES}/${id}/fork`)).data;
    for (const each of [id, sandbox.id]) {
      const { data } = await team.get(`${SANDBOXES}/${each}`);
      const resources = { memory: '512Mi', cpu: 0.1, disk: '2048Mi' };
      const network = { mode: 'block-all', enforced_by: 'network_namespace' };
      expect(data).toMatchObject({ bandwidth, network, resources });
      const spec = { bandwidth, network_mode: 'block-all', disk_mib: 2048 };
      expect(runtime.specs.get(each)).toMatchObject(spec);
    }
    const plain = await team.claim();
    expect((await team.get(`${SANDBOXES}/${plain}`)).data).toMatchObject({
      bandwidth: { ...bandwidth, egress_bandwidth_bytes_per_second: 0 },
      network: { mode: 'allow-all', enforced_by: null },
      resources: { memory: '512Mi', cpu: 0.1, disk: '10Gi' },
    });
  });

  it('of before there were any has no limit', async () => {
    const { services, claim_rules, forks, runtime } = await scriptedParts(await fresh());
    const before = { bandwidth: null, disk_mib: null, network: '{"bandwidth_burst_bytes":5}' };
    const row = rowOf('sbx_1', before);
    await services.store.write((tx) => services.store.insert(tx, row));
    const kept = await services.store.find(services.store.db, 'sbx_1', null);
    const [view, spec] = [sandboxView(kept as never, SEAL), specOf(kept as never, SEAL)];
    expect(view).toMatchObject({ bandwidth: NO_BANDWIDTH, network: { mode: 'allow-all' } });
    expect(view.resources.disk).toBe('10Gi');
    expect(spec).toMatchObject({ bandwidth: NO_BANDWIDTH, network_mode: 'allow-all', disk_mib: 10_240 });
    expect(claim_rules.diskFor(512)).toBe(10_240);
    const blocked = rowOf('sbx_2', { network: '{"mode":"block-all"}' });
    const network = { mode: 'block-all', enforced_by: 'network_namespace' };
    expect(sandboxView(blocked as never, SEAL)).toMatchObject({ network });
    // A fork is made with a bound, and leases it.
    runtime.states.set('sbx_1', 'running');
    expect(await forks.fork({ sandbox_id: 'sbx_1', team_id: null }, {})).toMatchObject({ disk_mib: 10_240 });
  });
});

it('a claim with a bad limit, mode or size is refused by name', async () => {
  const { team, runtime } = await startScripted(`sqlite:${scratchFolder()}/manager.db`);
  runtime.networks.mode = { mode: 'metered', reason: null, block_all: 'network_namespace' };
  for (const [field, config] of [
    ['bandwidth.egress_bandwidth_bytes_per_second', { bandwidth: { egress_bandwidth_bytes_per_second: -1 } }],
    [
      'bandwidth.ingress_bandwidth_bytes_per_second',
      { bandwidth: { ingress_bandwidth_bytes_per_second: 1.5 } },
    ],
    ['bandwidth.bandwidth_burst_bytes', { bandwidth: { bandwidth_burst_bytes: 2 ** 53 } }],
    ['bandwidth.burst', { bandwidth: { burst: 1 } }],
    ['network.mode', { network: { mode: 'block-some' } }],
    ['network.bandwidth_burst_bytes', { network: { bandwidth_burst_bytes: 1 } }],
    ['resources.disk', { resources: { disk: '127Mi' } }],
    ['resources.disk', { resources: { disk: '1.5Gi' } }],
  ]) {
    const { status, error } = await team.post(SANDBOXES, { config });
    expect([status, error?.details?.field]).toEqual([400, `config.${field}`]);
  }
});

it('without a metered network a claim with a limit is refused, and the default bandwidth is not shown as if it held', async () => {
  const file = { egress_bandwidth_bytes_per_second: 5 };
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`, { file });
  const team = await client('team_1', 'sandboxes:write');
  for (const [field, config] of [
    ['config.bandwidth', { bandwidth: { ingress_bandwidth_bytes_per_second: 1 } }],
    ['config.network.mode', { network: { mode: 'block-all' } }],
  ]) {
    const { status, error } = await team.post(SANDBOXES, { config });
    expect([status, error?.code, error?.details]).toEqual([400, 'invalid_request', { field }]);
    expect(error?.message).toBe(
      `${field}: is not enforced here: the network is not metered (--network host-unmetered)`,
    );
  }
  const bandwidth = { egress_bandwidth_bytes_per_second: 0, bandwidth_burst_bytes: 5 };
  const id = await team.claim({ bandwidth, network: { mode: 'allow-all' } });
  expect((await team.get(`${SANDBOXES}/${id}`)).data.bandwidth).toEqual(NO_BANDWIDTH);
});

it('where policies of a cluster keep sandboxes from the network, block-all is taken, and its record says by what it holds', async () => {
  const { team, runtime } = await startScripted(`sqlite:${scratchFolder()}/manager.db`);
  runtime.networks.mode = { mode: 'host-unmetered', reason: 'not counted', block_all: 'network_policy' };
  const id = await team.claim({ network: { mode: 'block-all' } });
  const { sandbox } = (await team.post(`${SANDBOXES}/${id}/fork`)).data;
  for (const each of [id, sandbox.id]) {
    const { data } = await team.get(`${SANDBOXES}/${each}`);
    expect(data.network).toEqual({ mode: 'block-all', enforced_by: 'network_policy' });
    expect(runtime.specs.get(each)?.network_mode).toBe('block-all');
  }
  const bandwidth = { ingress_bandwidth_bytes_per_second: 1 };
  const { status, error } = await team.post(SANDBOXES, { config: { bandwidth } });
  expect([status, error?.details]).toEqual([400, { field: 'config.bandwidth' }]);
});

/** The change of a body that its route would take. */
function accepted(body: unknown) {
  const wrong = problemOf(ChangeBody, body);
  if (wrong) throw new FieldError(wrong);
  return changeRequest(body as Static<typeof ChangeBody>);
}

describe('a change', () => {
  it('holds what was given, with the memory in MiB, and nothing else', () => {
    expect(changeRequest({ config: {} })).toEqual({});
    const env_vars = { A: '1' };
    const config = { env_vars, ttl: 5, hard_ttl: 0, auto_resume: true, resources: { memory: '1Gi' } };
    expect(changeRequest({ config })).toEqual({
      env_vars,
      ttl: 5,
      hard_ttl: 0,
      auto_resume: true,
      memory: '1Gi',
      memory_mib: 1024,
    });
    expect(changeRequest({ config: { resources: {} } })).toEqual({});
  });

  it('keeps the text of the memory beside its MiB', () => {
    fc.assert(
      fc.property(fc.integer({ min: 128, max: 999_999_999 }), (memory_mib) => {
        const memory = `${memory_mib}Mi`;
        expect(changeRequest({ config: { resources: { memory } } })).toEqual({ memory, memory_mib });
      }),
    );
  });

  it.each([
    [{ webhook: { url: 'http://example.com/' } }, 'config.webhook'],
    [{ webhook: null }, 'config.webhook'],
    [{ resources: { memory: '127Mi' } }, 'config.resources.memory'],
    [{ resources: { memory: 'much' } }, 'config.resources.memory'],
    [{ env_vars: { 'A=B': '1' } }, 'config.env_vars'],
    [{ env_vars: { A: '\0' } }, 'config.env_vars.A'],
    [{ env_vars: { A: 'x'.repeat(64 * 1024) } }, 'config.env_vars'],
    [{ ttl: 0.5 }, 'config.ttl'],
    [{ colour: 1 }, 'config.colour'],
  ])('with %j is refused by name, by its schema or after it', (config, field) => {
    const refused = { code: 'invalid_request', details: { field } };
    expect(() => accepted({ config })).toThrow(expect.objectContaining(refused));
  });
});
