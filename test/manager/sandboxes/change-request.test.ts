import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { changeRequest } from '../../../src/manager/sandboxes/change-request.ts';

describe('a change', () => {
  it('holds what was given, with the memory in MiB, and nothing else', () => {
    expect(changeRequest({ config: {} })).toEqual({});
    const env_vars = { A: '1' };
    const config = { env_vars, ttl: 5, hard_ttl: 0, auto_resume: true, resources: { memory: '1Gi' } };
    expect(changeRequest({ config })).toEqual({
      env_vars,
      ttl: 5,
      hard_ttl: 0,
      auto_resume: true,
      memory: '1Gi',
      memory_mib: 1024,
    });
    expect(changeRequest({ config: { resources: {} } })).toEqual({});
  });

  it('keeps the text of the memory beside its MiB', () => {
    fc.assert(
      fc.property(fc.integer({ min: 128, max: 999_999_999 }), (memory_mib) => {
        const memory = `${memory_mib}Mi`;
        expect(changeRequest({ config: { resources: { memory } } })).toEqual({ memory, memory_mib });
      }),
    );
  });

  it.each([
    [{ webhook: { url: 'http://example.com/' } }, 'config.webhook'],
    [{ webhook: null }, 'config.webhook'],
    [{ resources: { memory: '127Mi' } }, 'config.resources.memory'],
    [{ resources: { memory: 'much' } }, 'config.resources.memory'],
    [{ env_vars: { 'A=B': '1' } }, 'config.env_vars'],
    [{ env_vars: { A: '\0' } }, 'config.env_vars.A'],
  ])('with %j is refused by name', (config, field) => {
    const refused = { code: 'invalid_request', details: { field } };
    expect(() => changeRequest({ config })).toThrow(expect.objectContaining(refused));
  });
});
