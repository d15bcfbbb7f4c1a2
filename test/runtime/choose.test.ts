import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import { chooseRuntime, type RuntimeKind } from '../../src/runtime/choose.ts';
import { LocalRuntime } from '../../src/runtime/local-runtime.ts';
import { NoRuntime } from '../../src/runtime/no-runtime.ts';
import { scratchFolder } from '../support/scratch.ts';

function chosen(runtime: RuntimeKind) {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  const options = { runtime, data_dir: join(scratchFolder(), 'data'), allow_webhook_cidr: [] };
  return { runtime: chooseRuntime(options, systemClock, log), log: lines.join('') };
}

it.each([
  ['none', NoRuntime, false],
  ['local', LocalRuntime, false],
  ['local-unsafe', LocalRuntime, true],
] as const)('--runtime %s is chosen by name; only local-unsafe warns', (kind, type, does_warn) => {
  const { runtime, log } = chosen(kind);
  expect(runtime).toBeInstanceOf(type);
  expect(log.includes('sandboxes are not isolated')).toBe(does_warn);
});
