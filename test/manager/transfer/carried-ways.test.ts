import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { DaemonRuntime } from '../../support/manager/daemon-runtime.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

const SIZE = 300_000;

describe.each([
  ['without a rate', {}],
  ['under a rate', { team_transfer_rate: '1Gi' }],
])('what passes through a manager %s', (_, options) => {
  it('arrives as it was, and is counted by its way', async () => {
    const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, {
      ...{ runtime: new DaemonRuntime(), options },
    });
    const { manager } = running;
    const writer = await running.client('team_1', 'sandboxes:write');
    const id = await writer.claim();
    const call = (path: string, init: RequestInit = {}) =>
      fetch(`${manager.url}/api/v1/sandboxes/${id}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${writer.token}`, ...init.headers },
      });
    const carried = async () => {
      const text = await (await fetch(`${manager.url}/metrics`)).text();
      const lines = text.matchAll(
        /^sandbox_manager_transfer_bytes_total\{way="(\w+)",direction="(\w+)"\} (\d+)/gm,
      );
      return Object.fromEntries(
        [...lines].map(([, way, direction, value]) => [`${way} ${direction}`, Number(value)]),
      );
    };
    const bytes = Buffer.alloc(SIZE, 'abcdefg');
    const path = `/files?path=${encodeURIComponent(join(scratchFolder(), 'file'))}`;
    const stored = await call(path, { method: 'PUT', body: bytes });
    expect(stored.ok).toBe(true);
    expect(Buffer.from(await (await call(path)).arrayBuffer()).equals(bytes)).toBe(true);

    const server = createServer((request, response) => request.pipe(response)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const echoed = await call(`/ports/${port}/echo`, { method: 'POST', body: bytes });
    expect(Buffer.from(await echoed.arrayBuffer()).equals(bytes)).toBe(true);

    const started = await call('/processes?wait_ms=20000', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ shell: `head -c ${SIZE} /dev/zero | tr '\\0' x` }),
    });
    const { data } = (await started.json()) as { data: { process_id: string } };
    const output = await call(`/processes/${data.process_id}/output?stream=stdout`);
    expect((await output.text()).length).toBeGreaterThanOrEqual(SIZE);
    expect((await call('/webhook/deliveries')).status).toBe(200);

    const seen = await carried();
    const both = { 'files egress': SIZE, 'files ingress': SIZE, 'ports egress': SIZE, 'ports ingress': SIZE };
    // The answer to the start holds the output, too.
    for (const [way, size] of Object.entries({ ...both, 'processes egress': 2 * SIZE })) {
      expect(seen[way], way).toBeGreaterThanOrEqual(size);
      expect(seen[way], way).toBeLessThan(size + 10_000);
    }
    expect(seen['events egress']).toBeGreaterThan(0);
  });
});
