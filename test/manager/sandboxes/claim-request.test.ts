import { expect, it } from 'vitest';
import { startConsumer } from '../../support/consumer.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { describeOnStores } from '../../support/stores.ts';

const SANDBOXES = '/api/v1/sandboxes';

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
