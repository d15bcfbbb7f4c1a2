import fc from 'fast-check';
import type { Static } from 'typebox';
import { describe, expect, it } from 'vitest';
import { problemOf } from '../../../src/base/schema.ts';
import { FieldError } from '../../../src/contract/errors.ts';
import { ChangeBody, changeRequest } from '../../../src/manager/sandboxes/change-request.ts';

/** The change of a body that its route would take. */
function accepted(body: unknown) {
  const wrong = problemOf(ChangeBody, body);
  if (wrong) throw new FieldError(wrong);
  return changeRequest(body as Static<typeof ChangeBody>);
}

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
    [{ env_vars: { A: 'x'.repeat(64 * 1024) } }, 'config.env_vars'],
    [{ ttl: 0.5 }, 'config.ttl'],
    [{ colour: 1 }, 'config.colour'],
  ])('with %j is refused by name, by its schema or after it', (config, field) => {
    const refused = { code: 'invalid_request', details: { field } };
    expect(() => accepted({ config })).toThrow(expect.objectContaining(refused));
  });
});
