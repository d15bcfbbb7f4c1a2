import { getPriority, setPriority } from 'node:os';
import { expect, it } from 'vitest';
import { given_nice } from '../../../src/base/linux/priority.ts';
import { startSandboxd } from '../../support/sandboxd-program.ts';

/** Whether this account may raise a priority. */
function mayRaise(): boolean {
  try {
    setPriority(0, given_nice - 1);
    setPriority(0, given_nice);
    return true;
  } catch {
    return false;
  }
}

it('of the daemon is above that of what it starts, which has the one that it was started with', async () => {
  const daemon = await startSandboxd([]);
  const { data } = await daemon.call('POST', '/api/v1/processes', { command: ['sleep', '60'] });
  await daemon.call('GET', '/api/v1/files/stat?path=/');
  expect(getPriority(data.pid)).toBe(given_nice);
  expect(getPriority(daemon.pid)).toBe(mayRaise() ? Math.min(given_nice, -10) : given_nice);
});
