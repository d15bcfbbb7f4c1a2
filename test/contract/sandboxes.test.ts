import { expect, it } from 'vitest';
import { isSandboxId, TEMPLATE } from '../../src/contract/ids.ts';

it('recognises the id of a managed sandbox', () => {
  expect(isSandboxId('sbx_019a2b3c-4d5e-7f60-8123-456789abcdef')).toBe(true);
  for (const other of ['sbx_1', '019a2b3c-4d5e-7f60-8123-456789abcdef', 'sbx_../../etc/passwd', '']) {
    expect(isSandboxId(other), other).toBe(false);
  }
});

it('limits the name of a template to 64 harmless characters', () => {
  expect(TEMPLATE.test('python-3.12_slim')).toBe(true);
  for (const other of ['', 'a/b', 'a b', 'x'.repeat(65)]) expect(TEMPLATE.test(other), other).toBe(false);
});
