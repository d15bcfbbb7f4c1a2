import { expect, it } from 'vitest';
import { HIDDEN_PREFIX, hideNodeVariables, restoreNodeVariables } from '../../src/base/node-variables.ts';

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
