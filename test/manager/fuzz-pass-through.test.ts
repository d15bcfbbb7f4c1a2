import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import { chooseRuntime } from '../../src/runtime/choose.ts';
import { WatchedSandbox } from '../support/fuzzed-sandbox.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { fuzzPassThrough } from '../support/pass-through-fuzz.ts';
import { scratchFolder } from '../support/scratch.ts';

it('raw requests of those who may not change a sandbox change nothing of it, and turn no answer of its owner', async () => {
  const data_dir = join(scratchFolder(), 'data');
  const runtime = await chooseRuntime(
    {
      ...{ runtime: 'local', network: 'host-unmetered', data_dir },
      ...{
        allow_webhook_cidr: [],
        allow_sandbox_cidr: [],
        quota_fail_open: false,
        node: { memory_mib: null },
      },
      ...{ kubeconfig: null, kubernetes_namespace: null, kubernetes_image: null, templates: new Map() },
      kubernetes_injection: 'auto' as const,
    },
    systemClock,
    createLog('silent'),
  );
  const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, { runtime });
  const owner = await running.client('team_owner', 'sandboxes:write');
  const reader = await running.client('team_owner', 'sandboxes:read');
  const stranger = await running.client('team_stranger', 'sandboxes:write');
  const webhook = { url: 'http://127.0.0.1:9/nobody' };
  const watched = new WatchedSandbox(owner, data_dir, await owner.claim({ webhook }));
  await watched.begin();
  const port = Number(new URL(running.manager.url).port);
  const target = { port, tokens: [reader.token, stranger.token], sandbox_ids: [watched.sandbox_id] };
  const [tally, strays] = await Promise.all([
    fuzzPassThrough(target, { count: 1_500, seed: 3 }),
    watched.strayAnswers(100),
  ]);
  expect(tally.answers).toBeGreaterThan(300);
  expect(strays).toBe(0);
  expect(await watched.changes()).toEqual([]);
  expect((await owner.call('DELETE', `/api/v1/sandboxes/${watched.sandbox_id}`)).status).toBe(202);
  await expect.poll(() => existsSync(join(data_dir, watched.sandbox_id)), { timeout: 60_000 }).toBe(false);
});
