import { describe, expect, it } from 'vitest';
import { specOf, webhookTargetOf } from '../../../src/manager/sandboxes/sandbox-row.ts';
import { SEAL } from '../../support/manager/outbox.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';

describe('the secrets of a row', () => {
  const sealed = {
    webhook_url: 'http://consumer.invalid/',
    webhook_secret_sealed: SEAL.seal('of this test', 'sandbox/a/webhook_secret'),
    env_sealed: SEAL.seal('{"A":"1"}', 'sandbox/a/env'),
  };

  it('are opened for the runtime and for the delivery', () => {
    const row = rowOf('a', sealed);
    expect(specOf(row, SEAL)).toMatchObject({
      env: { A: '1' },
      webhook: { url: sealed.webhook_url, secret: 'of this test', watch_dir: null },
      record_key: SEAL.recordKey('a'),
    });
    expect(webhookTargetOf(row, SEAL)?.webhook_secret).toBe('of this test');
    expect(specOf(rowOf('a'), SEAL)).toMatchObject({ env: {}, webhook: null });
  });

  it('do not open in the row of another sandbox', () => {
    expect(() => specOf(rowOf('b', sealed), SEAL)).toThrow();
    expect(() => webhookTargetOf(rowOf('b', sealed), SEAL)).toThrow();
  });
});
