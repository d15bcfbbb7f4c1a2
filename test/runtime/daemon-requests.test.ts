import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { daemonError, initBody, namesIn } from '../../src/runtime/daemon-requests.ts';
import { spec } from '../support/runtime/sandboxes.ts';

const refused = (error: unknown) => ({ outcome: 'answered', status: 400, data: null, error }) as const;

describe('the body of an init', () => {
  it('has a webhook only if the sandbox has one, and only the parts that were given', () => {
    const given = spec('sbx-1', { webhook: null });
    expect(initBody(given, ['10.0.0.0/8'], 'direct')).toEqual({
      ...{ sandbox_id: 'sbx-1', team_id: given.team_id, env: given.env, record_key: given.record_key },
    });
    const none = { secret: '', watch_dir: null, watch_ignore: [], events: null };
    const webhook = { url: 'http://consumer.invalid/', ...none };
    expect(initBody({ ...given, webhook }, ['10.0.0.0/8'], 'direct')).toEqual({
      ...{ sandbox_id: 'sbx-1', team_id: given.team_id, env: given.env, record_key: given.record_key },
      webhook: { url: webhook.url, allow_cidrs: ['10.0.0.0/8'] },
    });
    const watch = { watch_dir: '/work', watch_ignore: ['*.log'], events: ['agent.event' as const] };
    const full = { ...webhook, secret: 'of this test', ...watch };
    expect(initBody({ ...given, webhook: full }, [], 'direct')).toMatchObject({
      webhook: { ...full, allow_cidrs: [] },
    });
    expect(initBody({ ...given, webhook }, ['10.0.0.0/8'], 'manager')).toMatchObject({
      webhook: { url: webhook.url, egress: 'manager' },
    });
  });
});

describe('the error of a daemon', () => {
  it.each(['webhook.watch_dir', 'env.A', 'reason'])('about %s names it, as the spec does', (field) => {
    const error = { code: 'invalid_request', message: `${field}: is bad`, details: { field } };
    expect(daemonError(refused(error))).toMatchObject({
      code: 'invalid_request',
      message: `${field}: is bad`,
      details: { field },
      field,
      problem: 'is bad',
    });
  });

  it('is passed on only with a known code, otherwise it is internal_error', () => {
    expect(daemonError(refused({ code: 'outbox_full' })).code).toBe('outbox_full');
    for (const code of ['unauthorized', 'quota_exceeded', 'made_up', 5, null]) {
      expect(daemonError(refused({ code })).code).toBe('internal_error');
    }
  });

  it('says why a daemon does not answer', () => {
    const { code, message } = daemonError({ outcome: 'unreachable', reason: 'ECONNREFUSED' });
    expect([code, message]).toEqual([
      'internal_error',
      "The sandbox's daemon does not answer (ECONNREFUSED).",
    ]);
  });

  it('is bounded, whatever the daemon answers', () => {
    fc.assert(
      fc.property(fc.anything(), fc.string({ maxLength: 20_000 }), (anything, text) => {
        for (const error of [
          anything,
          { message: text, details: anything },
          { message: anything, details: { field: text } },
        ]) {
          const { message, details } = daemonError(refused(error));
          expect(message.length).toBeLessThanOrEqual(2_100);
          expect(JSON.stringify(details ?? {}).length).toBeLessThanOrEqual(6 * 1_100);
        }
      }),
    );
  });
});

describe('the names of variables', () => {
  it('are those of the answer that are texts', () => {
    const answered = (data: unknown) => ({ outcome: 'answered', status: 200, data, error: null }) as const;
    expect(namesIn(answered({ names: ['A', 5, null, 'B'] }))).toEqual(['A', 'B']);
    for (const data of [null, 5, [], {}, { names: 'A' }]) expect(namesIn(answered(data))).toEqual([]);
    expect(namesIn({ outcome: 'unreachable', reason: 'timeout' })).toEqual([]);
  });
});
