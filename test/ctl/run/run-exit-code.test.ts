import { expect, it } from 'vitest';
import { run } from '../../support/ctl/sandboxctl.ts';
import { startSandboxd } from '../../support/sandboxd-program.ts';

it('run ends as the command did, or as docker run does where it does not run', async () => {
  const daemon = await startSandboxd([]);
  const asked = (...args: string[]) =>
    run(['run', '--url', daemon.url, '--state-dir', daemon.state_dir, ...args]);
  expect((await asked('--', 'sh', '-c', 'exit 3')).code).toBe(3);
  expect(await asked('--', 'no-such-program')).toMatchObject({
    code: 127,
    stderr: expect.stringContaining('no-such-program is not found'),
  });
  expect((await asked('--', '/etc/passwd')).code).toBe(126);
  expect((await asked('--no-such-option', '--', 'true')).code).toBe(125);
});
