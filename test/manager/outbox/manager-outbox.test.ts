import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { verify } from '../../../src/webhook/signature.ts';
import { eventually } from '../../support/eventually.ts';
import { rawServer } from '../../support/hostile-server.ts';
import { deliver, startReplica } from '../../support/manager/delivering.ts';
import { opened } from '../../support/manager/outbox.ts';
import { scratchFolder } from '../../support/scratch.ts';
import type { Sent } from '../../support/scripted-transport.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe('a deletion', () => {
  it('is delivered at once, as it was signed', async () => {
    const { clock, deleted, sent, states } = await deliver(() => 204);
    await deleted();
    await clock.advance(0);
    expect(sent).toHaveLength(1);
    const { url, headers, body } = (sent[0] as Sent).request;
    expect(url).toBe('http://consumer.invalid/hook?key=1');
    expect(Object.keys(headers).sort()).toEqual(
      [
        'Content-Type',
        'User-Agent',
        'X-Service-Attempt',
        'X-Service-Signature',
        'ce-id',
        'ce-source',
        'ce-specversion',
        'ce-time',
        'ce-type',
      ].sort(),
    );
    expect(verify('secret of this test', body, headers['X-Service-Signature'])).toBe(true);
    expect(await states()).toEqual(['delivered']);
  });

  it.each([408, 425, 429, 500, 502, 599])('is sent again after %i', async (status) => {
    const { clock, deleted, sent, states } = await deliver(({ attempt }) => (attempt < 3 ? status : 200));
    await deleted();
    await clock.advance(10_000);
    expect(sent.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(await states()).toEqual(['delivered']);
  });

  it.each([301, 302, 308, 400, 401, 404, 410, 422])('is sent once and failed after %i', async (status) => {
    const { clock, deleted, sent, states } = await deliver(() => status);
    await deleted();
    await clock.advance(2 * MINUTE_MS);
    expect(sent).toHaveLength(1);
    expect(await states()).toEqual(['failed']);
  });

  it('is attempted up to the end of its window and once at it, then expired, and gone a day later', async () => {
    const { clock, deleted, sent, states } = await deliver(() => 408);
    await deleted();
    await clock.advance(2 * MINUTE_MS);
    clock.freeze(23 * HOUR_MS + 50 * MINUTE_MS);
    await clock.advance(8 * MINUTE_MS - 1_000);
    const before = sent.length;
    expect(before).toBeGreaterThan(6);
    expect(await states()).toEqual(['pending']);
    await clock.advance(2 * MINUTE_MS);
    const at_end = sent.filter(({ at_ms }) => at_ms >= 24 * HOUR_MS);
    expect(at_end).toHaveLength(1);
    expect(at_end[0]?.at_ms).toBeLessThan(24 * HOUR_MS + 100);
    const all = sent.length;
    expect(await states()).toEqual(['expired']);
    clock.freeze(24 * HOUR_MS - 3 * MINUTE_MS);
    await clock.advance(30_000);
    expect(await states()).toEqual(['expired']);
    await clock.advance(45_000);
    expect(sent).toHaveLength(all);
    expect(await states()).toEqual([]);
  });

  it('gets its last attempt at the first start after its window', async () => {
    const { clock, delivery, deleted, sent, states, again } = await deliver(() => 503);
    await deleted();
    await clock.advance(2_000);
    await delivery.stop();
    const before = sent.length;
    clock.step(30 * HOUR_MS);
    await again();
    await clock.advance(5_000);
    expect(sent).toHaveLength(before + 1);
    expect(await states()).toEqual(['expired']);
    await clock.advance(2 * MINUTE_MS);
    expect(sent).toHaveLength(before + 1);
  });

  it('is not held up by a clock that is set back', async () => {
    const { clock, deleted, sent, states } = await deliver(({ attempt }) => (attempt < 6 ? 425 : 200));
    await deleted();
    await clock.advance(1_000);
    clock.step(-5 * HOUR_MS);
    await clock.advance(30_000);
    expect(sent).toHaveLength(6);
    expect(await states()).toEqual(['delivered']);
  });
});

describe('an address that may not be dialled', () => {
  it.each(['localhost', '127.0.0.1', '[::ffff:7f00:1]'])('is %s: blocked and tried again', async (host) => {
    const server = await rawServer(({ socket }) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'));
    const database = await opened(`sqlite:${scratchFolder()}/manager.db`);
    const webhook_url = `http://${host}:${new URL(server.url).port}/`;
    const refused = await startReplica(database, systemClock);
    await refused.deleted({ webhook_url });
    const detail = await eventually(
      async () => {
        const [row] = (await refused.delivery.views.list('team_1', { limit: 1 })).deliveries;
        const found = await refused.delivery.views.find('team_1', row?.event_id ?? '');
        expect(found?.attempts.length).toBeGreaterThanOrEqual(2);
        return found;
      },
      { timeout: 60_000, interval: 20 },
    );
    await refused.delivery.stop();
    expect(detail).toMatchObject({ state: 'pending' });
    expect(detail?.attempts[0]).toMatchObject({ status: null, error: 'blocked' });
    expect(server.connections).toBe(0);
    // The same record, where the operator lists the address.
    const allowed = await startReplica(database, systemClock, { allowed: ['127.0.0.0/8'] });
    onTestFinished(() => allowed.delivery.stop());
    await eventually(() => expect(server.requests).toHaveLength(1), { timeout: 60_000 });
  });
});
