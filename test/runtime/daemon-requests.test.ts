import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Log } from '../../src/base/log.ts';
import { VERSION } from '../../src/base/version.ts';
import type { WebhookRetry } from '../../src/contract/words.ts';
import {
  checkSwitch,
  daemonError,
  forkPauseBody,
  initBody,
  namesIn,
  requireFeature,
  ServedDaemons,
} from '../../src/runtime/daemon-requests.ts';
import { spec } from '../support/runtime/sandboxes.ts';
import { scratchFolder } from '../support/scratch.ts';

const refused = (error: unknown) => ({ outcome: 'answered', status: 400, data: null, error }) as const;

describe('the body of an init', () => {
  it('has a webhook only if the sandbox has one, and only the parts that were given', () => {
    const given = spec('sbx-1', { webhook: null });
    expect(initBody(given, ['10.0.0.0/8'], 'direct')).toEqual({
      ...{ sandbox_id: 'sbx-1', team_id: given.team_id, env: given.env, record_key: given.record_key },
    });
    const none = {
      secret: '',
      watch_dir: null,
      watch_ignore: [] as string[],
      events: null,
      retry: 'transient' as const,
    };
    const webhook = { url: 'http://consumer.invalid/', ...none };
    expect(initBody({ ...given, webhook }, ['10.0.0.0/8'], 'direct')).toEqual({
      ...{ sandbox_id: 'sbx-1', team_id: given.team_id, env: given.env, record_key: given.record_key },
      webhook: { url: webhook.url, allow_cidrs: ['10.0.0.0/8'] },
    });
    const watch = { watch_dir: '/work', watch_ignore: ['*.log'], events: ['agent.event' as const] };
    const full = { ...webhook, secret: 'of this test', ...watch, retry: 'any' } as const;
    expect(initBody({ ...given, webhook: full }, [], 'direct')).toMatchObject({
      webhook: { ...full, allow_cidrs: [] },
    });
    expect(initBody({ ...given, webhook }, ['10.0.0.0/8'], 'manager')).toMatchObject({
      webhook: { url: webhook.url, egress: 'manager' },
    });
  });
});

/** A daemon that answers everything like this; its address. */
async function answering(data: unknown): Promise<string> {
  const socket = join(scratchFolder(), 'control.sock');
  const server = createServer((_, response) => response.end(JSON.stringify({ success: true, data })));
  server.listen(socket);
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return socket;
}

const specWith = (retry: WebhookRetry) => {
  const limits = { secret: '', watch_dir: null, watch_ignore: [], events: null, retry };
  return spec('sbx-1', { webhook: { url: 'http://consumer.invalid/', ...limits } });
};

describe('a daemon of another version', () => {
  const initialised = (data: unknown) => ({ outcome: 'answered', status: 200, data, error: null }) as const;
  const [major] = VERSION.split('.');
  const lines: unknown[][] = [];
  const log = { warn: (...line: unknown[]) => void lines.push(line) } as unknown as Log;
  const served = new ServedDaemons(log);

  it.each([`${major}.0.0`, `${major}.999.1-rc.1`, undefined, 7, 'none'])('%s is served', (version) => {
    expect(() => served.check(initialised({ version, features: ['of later'] }), spec('sbx-1'))).not.toThrow();
  });

  it('is not served where it would ignore what its webhook retries', () => {
    const given = specWith('any');
    const version = `${major}.0.0`;
    const asked = (features: string[]) => () => served.check(initialised({ version, features }), given);
    expect(asked(['webhook_retry'])()).toEqual(['webhook_retry']);
    expect(asked([])).toThrow(expect.objectContaining({ code: 'daemon_too_old' }));
    expect(() => served.check(initialised({ version, features: [] }), specWith('transient'))).not.toThrow();
  });

  it('is not served where its major number is another, with both versions by name', () => {
    for (const data of [{ version: '77.1.2' }, { version: '77.1.2', features: null, more: 1 }]) {
      expect(() => served.check(initialised(data), spec('sbx-1'))).toThrow(
        expect.objectContaining({
          code: 'daemon_too_old',
          message: expect.stringMatching(`77.1.2.*${VERSION}`),
        }),
      );
    }
  });

  it('is told of where its answer says more than this version knows: each name once, and few of them', () => {
    const told = () => lines.splice(0).map(([facts]) => (facts as { fields: string[] }).fields);
    const answer = (more: object) =>
      initialised({ state: 'running', version: `${major}.0.0`, features: [], ...more });
    const daemons = new ServedDaemons(log);
    lines.length = 0;
    daemons.check(answer({}), spec('sbx-1'));
    expect(told()).toEqual([]);
    daemons.check(answer({ engine: 1, cores: 2 }), spec('sbx-1'));
    daemons.check(answer({ engine: 3, disks: 4 }), spec('sbx-1'));
    expect(told()).toEqual([['engine', 'cores'], ['disks']]);
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`${'x'.repeat(n)}`, n]));
    daemons.check(answer(many), spec('sbx-1'));
    daemons.check(answer({ last: 1 }), spec('sbx-1'));
    const all = told();
    expect(all).toHaveLength(1);
    expect(all[0]).toHaveLength(17);
    expect(all[0]?.every((name) => name.length <= 64)).toBe(true);
  });

  it('is asked for a feature before that is used', async () => {
    const old = await answering({ alive: true, version: '0.0.1', features: ['other'] });
    await expect(requireFeature(old, 'discard_deliveries')).rejects.toMatchObject({
      code: 'daemon_too_old',
      message: expect.stringContaining('0.0.1'),
    });
    const first = await answering({ alive: true });
    await expect(requireFeature(first, 'discard_deliveries')).rejects.toMatchObject({
      code: 'daemon_too_old',
    });
    await requireFeature(
      await answering({ alive: true, version: '0.0.1', features: ['discard_deliveries'] }),
      'discard_deliveries',
    );
    await expect(requireFeature('/none', 'discard_deliveries')).rejects.toMatchObject({
      code: 'unavailable',
    });
  });
});

describe('a pause or resume that keeps no memory', () => {
  it('is refused by name before a daemon is asked that cannot end its processes', async () => {
    const old = await answering({ alive: true, version: '0.0.1', features: ['other'] });
    await expect(checkSwitch(old, false)).rejects.toMatchObject({
      code: 'daemon_too_old',
      message: expect.stringContaining('0.0.1'),
    });
    await checkSwitch(old, true);
    await checkSwitch('/none', false);
    expect(forkPauseBody(['other'])).toEqual({ reason: 'fork' });
    const able = await answering({ alive: true, features: ['switch_without_memory'] });
    await checkSwitch(able, false);
    expect(forkPauseBody(['switch_without_memory'])).toEqual({ reason: 'fork', memory: false });
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
