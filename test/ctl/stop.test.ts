import { expect, it } from 'vitest';
import type { ProcessView } from '../../src/contract/processes.ts';
import { howItEnded } from '../../src/ctl/stop.ts';

it.each([
  [{ state: 'exited', exit_code: 0, signal: null }, 'exited with 0'],
  [{ state: 'crashed', exit_code: 139, signal: 'SIGSEGV' }, 'crashed by SIGSEGV'],
  [{ state: 'exited', exit_code: null, signal: null }, 'exited; exit code unknown'],
] as const)('says how a process ended: %j', (ended, text) => {
  expect(howItEnded(ended as unknown as ProcessView)).toBe(text);
});
