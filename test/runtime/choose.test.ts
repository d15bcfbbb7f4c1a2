import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import type { NetworkOption } from '../../src/contract/network.ts';
import type { RuntimeKind } from '../../src/contract/templates.ts';
import { chooseRuntime } from '../../src/runtime/choose.ts';
import { LocalRuntime } from '../../src/runtime/local/local-runtime.ts';
import { NoRuntime } from '../../src/runtime/no-runtime.ts';
import { scratchFolder } from '../support/scratch.ts';

const NO_CLUSTER = {
  ...{ kubeconfig: null, kubernetes_namespace: null, kubernetes_image: null, templates: new Map() },
  kubernetes_injection: 'auto' as const,
};

async function chosen(runtime: RuntimeKind, network: NetworkOption = 'auto', image: string | null = null) {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const options = {
    ...{ runtime, network, data_dir: join(scratchFolder(), 'data') },
    ...{ allow_webhook_cidr: [], allow_sandbox_cidr: [], quota_fail_open: false, ...NO_CLUSTER },
    kubernetes_image: image,
    node: { memory_mib: null },
  };
  return { runtime: await chooseRuntime(options, systemClock, log), log: lines.join('') };
}

it.each([
  ['none', NoRuntime, false],
  ['local', LocalRuntime, false],
  ['local-unsafe', LocalRuntime, true],
] as const)('--runtime %s is chosen by name; only local-unsafe warns', async (kind, type, does_warn) => {
  const { runtime, log } = await chosen(kind);
  expect(runtime).toBeInstanceOf(type);
  expect(log.includes('sandboxes are not isolated')).toBe(does_warn);
});

it.each([
  ['local-unsafe', 'metered'],
  ['local-unsafe', 'none'],
  ['none', 'metered'],
] as const)('--runtime %s refuses --network %s, which it could not give', async (kind, network) => {
  await expect(chosen(kind, network)).rejects.toThrow(
    `--network ${network} needs --runtime local, not ${kind}`,
  );
  expect((await chosen(kind, 'host-unmetered')).runtime).toBeDefined();
});

it('--runtime kubernetes needs an image and templates', async () => {
  const missing = { exit_code: 2, message: expect.stringContaining('is required with --runtime kubernetes') };
  await expect(chosen('kubernetes')).rejects.toMatchObject(missing);
  await expect(chosen('kubernetes', 'auto', 'sandboxd:1')).rejects.toMatchObject(missing);
});
