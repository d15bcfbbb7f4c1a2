import { expect, it } from 'vitest';
import {
  HIDDEN_PREFIX,
  hideNodeVariables,
  LAUNCH_VARIABLES,
  restoreNodeVariables,
} from '../../src/base/node-variables.ts';

it('hides variables that change Node, and restores them for children', () => {
  const given = { PATH: '/bin', NODE_OPTIONS: '--inspect', OPENSSL_CONF: '', NODE_EXTRA_CA_CERTS: '/ca' };
  const env: NodeJS.ProcessEnv = { ...given };
  expect(hideNodeVariables(env)).toBe(true);
  expect(env).toEqual({
    PATH: '/bin',
    NODE_EXTRA_CA_CERTS: '/ca',
    [`${HIDDEN_PREFIX}NODE_OPTIONS`]: '--inspect',
    [`${HIDDEN_PREFIX}OPENSSL_CONF`]: '',
  });
  expect(restoreNodeVariables(env)).toEqual(given);
});

it('reports that there was nothing to hide', () => {
  const env: NodeJS.ProcessEnv = { PATH: '/bin' };
  expect(hideNodeVariables(env)).toBe(false);
  expect(env).toEqual({ PATH: '/bin' });
});

it('leaves other variables with the prefix alone', () => {
  const env = { [`${HIDDEN_PREFIX}HOME`]: '/root', UNSET: undefined };
  expect(restoreNodeVariables(env)).toEqual({ [`${HIDDEN_PREFIX}HOME`]: '/root' });
});

it("gives children the number of heaps that was set for them, not the daemon's own", () => {
  expect(restoreNodeVariables({ PATH: '/bin', ...LAUNCH_VARIABLES })).toEqual({ PATH: '/bin' });
  const given = { ...LAUNCH_VARIABLES, [`${HIDDEN_PREFIX}MALLOC_ARENA_MAX`]: '4' };
  expect(restoreNodeVariables(given)).toEqual({ MALLOC_ARENA_MAX: '4' });
  expect(restoreNodeVariables({ MALLOC_ARENA_MAX: '2' })).toEqual({ MALLOC_ARENA_MAX: '2' });
});
