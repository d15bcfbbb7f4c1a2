import { expect, it } from 'vitest';
import type { ManagedSandbox } from '../../../src/console/api/managed-sandbox.ts';
import { changeOf, formOf } from '../../../src/console/sandboxes/change-form.ts';

const SANDBOX = { resources: { memory: '512Mi', cpu: 1, disk: '1Gi' }, auto_resume: false } as ManagedSandbox;
const AS_IT_IS = formOf(SANDBOX);

it('what is left as it is changes nothing', () => {
  expect(changeOf(AS_IT_IS, SANDBOX)).toEqual({ config: {}, faults: {} });
});

it('everything that the manager lets be changed is in the change', () => {
  const form = {
    ...AS_IT_IS,
    ...{ memory: '1Gi', ttl: '30m', hard_ttl: '0', idle_ttl: '90', auto_resume: true },
    ...{ sets_env: true, env_vars: 'A=1\nB=' },
  };
  expect(changeOf(form, SANDBOX)).toEqual({
    config: {
      ...{ resources: { memory: '1Gi' }, ttl: 1_800, hard_ttl: 0, idle_ttl: 90, auto_resume: true },
      env_vars: { A: '1', B: '' },
    },
    faults: {},
  });
  // All variables can be taken away.
  expect(changeOf({ ...AS_IT_IS, sets_env: true }, SANDBOX).config).toEqual({ env_vars: {} });
});

it('what the manager would refuse is said by its field', () => {
  const form = { ...AS_IT_IS, memory: '64Mi', ttl: 'soon', sets_env: true, env_vars: 'no equals' };
  expect(Object.keys(changeOf(form, SANDBOX).faults).sort()).toEqual(['env_vars', 'memory', 'ttl']);
});
