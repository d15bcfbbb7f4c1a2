import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { networkProblem } from '../../../src/network/problem.ts';
import { LoopbackNetworks } from '../../../src/runtime/networks/loopback-networks.ts';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import { MeteredNode } from '../../support/runtime/metered-node.ts';
import { Sandboxes, SECRET, spec, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** Their sandboxes have a loopback interface of their own, and no other network. */
const openSandboxes = (data_dir?: string) =>
  Sandboxes.open('local', data_dir, undefined, {}, new LoopbackNetworks());

const PUBLISH = `curl -sf -X POST -H 'Content-Type: application/json' -d '{"payload":{}}' $SANDBOXD_URL/api/v1/webhook/publish`;

it('delivers through its manager its whole life, and through the next one after a restart', async () => {
  const sandboxes = await openSandboxes();
  const { runtime, data_dir } = sandboxes;
  const consumer = await startConsumer();
  const given = spec('sbx-1', webhook(consumer.url));
  await runtime.create(given);
  await consumer.arrival('sandbox.ready');
  const record = JSON.parse(readFileSync(join(data_dir, 'sbx-1', 'sandbox.json'), 'utf8'));
  expect(await sandboxes.output('sbx-1', 'tail -n +3 /proc/net/dev | cut -d: -f1')).toBe('lo');
  expect(record.webhook_authority).toBe(new URL(consumer.url).host);
  await runtime.pause('sbx-1', null);
  await consumer.arrival('sandbox.paused');
  await runtime.fork('sbx-1', spec('sbx-2', webhook(consumer.url)));
  await eventually(() => {
    const forked = consumer.deliveries.filter(({ body }) => JSON.parse(body).sandbox_id === 'sbx-2');
    expect(forked.map(({ event }) => event.event_type)).toEqual(['sandbox.ready', 'sandbox.paused']);
  });
  await runtime.resume('sbx-1', null);
  await consumer.arrival('sandbox.resumed');

  // Without a manager everything waits in the sandbox.
  await runtime.stop();
  await sandboxes.output('sbx-1', PUBLISH);
  const endpoint = async () => (await sandboxes.ask('sbx-1', 'GET', '/webhook/deliveries')).deliveries[0];
  await eventually(async () => expect(await endpoint()).toMatchObject({ last_error: 'connect' }));
  expect(consumer.of('agent.event')).toEqual([]);

  const next = await openSandboxes(data_dir);
  // As the manager does with every sandbox that is recorded.
  expect(await next.runtime.liveness('sbx-1')).toBe('alive');
  await consumer.arrival('agent.event');
  // The mode of a sandbox is that of its creation.
  const direct = await Sandboxes.open('local', data_dir);
  expect(await direct.runtime.create(given)).toEqual({ pod_name: 'local-sbx-1', persistence: 'root' });
  expect(consumer.unsigned(SECRET)).toEqual([]);
  expect(new Set(consumer.deliveries.map(({ event }) => event.event_id)).size).toBe(
    consumer.deliveries.length,
  );
  expect(await next.runtime.end('sbx-1')).toEqual({ outcome: 'killed' });
});

it('is taken over by a manager that runs beside the one that made it', async () => {
  const data_dir = join(scratchFolder(), 'data');
  const [maker, other] = [await openSandboxes(data_dir), await openSandboxes(data_dir)];
  const consumer = await startConsumer();
  await maker.runtime.create(spec('sbx-1', webhook(consumer.url)));
  await maker.runtime.stop();
  expect(await other.runtime.liveness('sbx-1')).toBe('alive');
  await other.output('sbx-1', PUBLISH);
  await consumer.arrival('agent.event');
});

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;

it.skipIf(problem !== null)(`is not charged for it in a metered network${why}`, async () => {
  const { sandboxes, networks } = await MeteredNode.open();
  const consumer = await startConsumer();
  await sandboxes.runtime.create(spec('sbx-1', webhook(consumer.url)));
  const ready = JSON.parse((await consumer.arrival('sandbox.ready')).body);
  expect(ready.payload.http_port).toBe(49_983);
  const bytes = 500_000;
  await sandboxes.ask('sbx-1', 'POST', '/webhook/publish', { payload: { text: 'x'.repeat(bytes) } });
  expect((await consumer.arrival('agent.event')).body.length).toBeGreaterThan(bytes);
  const { egress, ingress } = (await networks.usage('sbx-1')) ?? {};
  // Neighbours are discovered by packets of the kernel's own.
  expect(egress?.passed_bytes).toBeLessThan(10_000);
  expect(ingress?.passed_bytes).toBeLessThan(10_000);
  // The consumer listens on the node's loopback.
  expect((await sandboxes.run('sbx-1', `curl -s -m 5 ${consumer.url}`)).exit_code).toBe(7);
});
