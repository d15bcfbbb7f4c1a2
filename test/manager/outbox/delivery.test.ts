import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { standardWebhookHeaders, verify } from '../../../src/webhook/signature.ts';
import { rawServer } from '../../support/hostile-server.ts';
import { deliver, startReplica } from '../../support/manager/delivering.ts';
import { opened, SECRET, undeliveredRecord, webhookTargetOf } from '../../support/manager/outbox.ts';
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

  it('is sent with the latest signature that has begun, the same body and event id at every attempt', async () => {
    const { clock, deleted, sent } = await deliver(({ attempt }) => (attempt < 12 ? 408 : 204));
    await deleted({ webhook_secret: SECRET });
    await clock.advance(20 * MINUTE_MS);
    expect(sent).toHaveLength(12);
    const ages_s = sent.map(({ request: { headers, body }, event_id, at_ms }, i) => {
      const timestamp_s = Number(headers['webhook-timestamp']);
      expect(headers).toMatchObject(standardWebhookHeaders(SECRET, event_id, timestamp_s, body) ?? {});
      expect(headers['X-Service-Attempt']).toBe(String(i + 1));
      return (Date.UTC(2026, 0, 1) + at_ms) / 1000 - timestamp_s;
    });
    expect(Math.min(...ages_s)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...ages_s)).toBeLessThan(240);
    expect(new Set(sent.map(({ request }) => request.body)).size).toBe(1);
    expect(new Set(sent.map(({ request }) => request.headers['webhook-timestamp'])).size).toBeGreaterThan(2);
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
    clock.step(23 * HOUR_MS + 50 * MINUTE_MS);
    // The window ends when ten minutes of the test have passed.
    await clock.advance(8 * MINUTE_MS - 1_000);
    const before = sent.length;
    expect(before).toBeGreaterThan(6);
    expect(await states()).toEqual(['pending']);
    await clock.advance(2 * MINUTE_MS);
    const at_end = sent.filter(({ at_ms }) => at_ms >= 10 * MINUTE_MS);
    expect(at_end).toHaveLength(1);
    expect(at_end[0]?.at_ms).toBeLessThan(10 * MINUTE_MS + 100);
    const all = sent.length;
    expect(await states()).toEqual(['expired']);
    clock.step(24 * HOUR_MS - 3 * MINUTE_MS);
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

describe('what was handed over', () => {
  it('goes on as it was: bytes, order, attempt numbers; Standard Webhooks are made anew', async () => {
    const { clock, handOver, sent, states } = await deliver(() => 200);
    const records = [
      undeliveredRecord(7, { attempts: 3, failures: 3, due_in_ms: 2_000, probe_in_ms: 2_000 }),
      undeliveredRecord(8),
      undeliveredRecord(9),
    ];
    await handOver(webhookTargetOf({ webhook_secret: SECRET }), records);
    await clock.advance(1_000);
    expect(sent.map(({ sequence, attempt }) => [sequence, attempt])).toEqual([
      [8, 1],
      [9, 1],
    ]);
    await clock.advance(1_500);
    expect(sent[2]).toMatchObject({ sequence: 7, attempt: 4 });
    expect(await states()).toEqual(['delivered', 'delivered', 'delivered']);
    for (const { request, event_id } of sent) {
      const record = records.find((each) => each.event_id === event_id);
      const timestamp_s = Number(request.headers['webhook-timestamp']);
      expect(request.body).toBe(record?.body);
      expect(request.headers).toEqual({
        ...record?.headers,
        ...standardWebhookHeaders(SECRET, event_id, timestamp_s, request.body),
        'X-Service-Attempt': request.headers['X-Service-Attempt'],
      });
    }
  });

  it('is attempted once more where its window was over', async () => {
    const { clock, handOver, sent, states } = await deliver(() => 503);
    const over = { attempts: 9, failures: 9, deadline_in_ms: 0 };
    await handOver(webhookTargetOf(), [
      undeliveredRecord(1, over),
      undeliveredRecord(2, { deadline_in_ms: 0 }),
    ]);
    await clock.advance(MINUTE_MS);
    expect(sent.map(({ sequence, attempt }) => [sequence, attempt]).sort()).toEqual([
      [1, 10],
      [2, 1],
    ]);
    expect(await states()).toEqual(['expired', 'expired']);
  });
});

describe('endpoints', () => {
  const at = (path: string) => ({ webhook_url: `http://consumer.invalid/${path}` });
  const pathOf = ({ request }: Sent) => new URL(request.url).pathname.slice(1);

  it('have 16 attempts each at most, and do not wait for one that hangs', async () => {
    const { clock, deleted, sent, delivery } = await deliver((each) =>
      pathOf(each) === 'hangs' ? 'hang' : 204,
    );
    for (let i = 0; i < 40; i++) await deleted(at('hangs'));
    await clock.advance(1_000);
    expect(sent).toHaveLength(16);
    for (let i = 0; i < 40; i++) await deleted(at(i % 2 ? 'one' : 'other?query=does-not-count'));
    await clock.advance(0);
    expect(sent.filter((each) => pathOf(each) !== 'hangs')).toHaveLength(40);
    expect(await gauge(delivery, 'webhook_endpoints_owned')).toBe(3);
  });

  it('have 256 attempts in all, with room for one that comes while all others hang', async () => {
    const { clock, deleted, sent, most_under_way } = await deliver((each) =>
      pathOf(each) === 'lives' ? 204 : 'hang',
    );
    for (let i = 0; i < 40 * 20; i++) await deleted(at(`hangs-${i % 40}`));
    await clock.advance(0);
    const hanging = sent.length;
    expect(hanging).toBeGreaterThan(200);
    for (let i = 0; i < 20; i++) await deleted(at('lives'));
    await clock.advance(0);
    expect(sent.filter((each) => pathOf(each) === 'lives')).toHaveLength(20);
    // Time-outs, back-offs, probes of all of them.
    await clock.advance(MINUTE_MS);
    expect(most_under_way()).toBeLessThanOrEqual(256);
    for (let i = 0; i < 20; i++) await deleted(at('lives'));
    await clock.advance(0);
    expect(sent.filter((each) => pathOf(each) === 'lives')).toHaveLength(40);
  });

  it('back off by themselves: an outage costs one probe a step, and others go on', async () => {
    const { clock, deleted, sent, states, delivery } = await deliver((each) =>
      pathOf(each) === 'down' ? 503 : 204,
    );
    for (let i = 0; i < 30; i++) await deleted(at('down'));
    await clock.advance(MINUTE_MS);
    const during = sent.length;
    expect(during).toBeLessThan(30);
    expect(await gauge(delivery, 'webhook_endpoints_backing_off')).toBe(1);
    await deleted(at('up'));
    await clock.advance(0);
    expect(sent.filter((each) => pathOf(each) === 'up')).toHaveLength(1);
    await clock.advance(5 * MINUTE_MS);
    expect(sent.length - during).toBeLessThan(20);
    expect(await states()).toContain('pending');
  });

  it('are given back when they have nothing to do, and taken again', async () => {
    const { clock, deleted, sent, database, delivery } = await deliver(() => 204);
    await deleted();
    await clock.advance(15_000);
    expect(await gauge(delivery, 'webhook_endpoints_owned')).toBe(0);
    const owners = await database.db.selectFrom('outbox_endpoints').select('owner').execute();
    expect(owners).toEqual([{ owner: null }]);
    await deleted();
    await clock.advance(0);
    expect(sent).toHaveLength(2);
  });

  it('are taken over from a replica that says nothing any more, within its lease', async () => {
    const { clock, deleted, sent, database, again } = await deliver(() => 'hang');
    await deleted();
    await clock.advance(100);
    expect(sent).toHaveLength(1);
    // As if the first replica were another machine's that died: its lease is what it last said.
    const other = 'elsewhere:1/1/1/ff';
    await database.db.updateTable('outbox_replicas').set({ owner: other }).execute();
    await database.db.updateTable('outbox_endpoints').set({ owner: other, fence: 9e15 }).execute();
    await again();
    await clock.advance(15_000);
    expect(new Set(sent.map(({ event_id }) => event_id)).size).toBe(1);
    await clock.advance(10_000);
    expect(sent.length).toBeGreaterThanOrEqual(2);
  });

  it('learn of what others committed, and of what they replayed', async () => {
    const { clock, deleted, sent, again, delivery, database } = await deliver(() => 400);
    const second = await again();
    await deleted();
    await clock.advance(0);
    await second.deleted();
    await clock.advance(1_000);
    expect(sent).toHaveLength(2);
    const rows = await database.db.selectFrom('outbox').select(['event_id', 'endpoint']).execute();
    await second.delivery.replay('team_1', rows[0]?.event_id ?? '');
    await clock.advance(1_000);
    expect(sent).toHaveLength(3);
    expect(sent[2]).toMatchObject({ event_id: rows[0]?.event_id, attempt: 2 });
    expect(sent[2]?.request.body).toBe(
      sent.find(({ event_id }) => event_id === rows[0]?.event_id)?.request.body,
    );
    expect(await delivery.replayAll('team_1', 'failed')).toBe(2);
    await clock.advance(0);
    expect(sent).toHaveLength(5);
  });
});

async function gauge(delivery: Awaited<ReturnType<typeof deliver>>['delivery'], name: string) {
  const figure = delivery.metrics().find((each) => each.name === name);
  return (await figure?.samples())?.[0]?.value;
}

describe('an address that may not be dialled', () => {
  it.each(['localhost', '127.0.0.1', '[::ffff:7f00:1]'])('is %s: blocked and tried again', async (host) => {
    const server = await rawServer(({ socket }) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'));
    const database = await opened(`sqlite:${scratchFolder()}/manager.db`);
    const webhook_url = `http://${host}:${new URL(server.url).port}/`;
    const refused = await startReplica(database, systemClock);
    await refused.deleted({ webhook_url });
    const detail = await vi.waitFor(
      async () => {
        const [row] = (await refused.delivery.views.list('team_1', { limit: 1 })).deliveries;
        const found = await refused.delivery.views.find('team_1', row?.event_id ?? '');
        expect(found?.attempts.length).toBeGreaterThanOrEqual(2);
        return found;
      },
      { timeout: 20_000, interval: 20 },
    );
    await refused.delivery.stop();
    expect(detail).toMatchObject({ state: 'pending' });
    expect(detail?.attempts[0]).toMatchObject({ status: null, error: 'blocked' });
    expect(server.connections).toBe(0);
    // The same record, where the operator lists the address.
    const allowed = await startReplica(database, systemClock, { allowed: ['127.0.0.0/8'] });
    onTestFinished(() => allowed.delivery.stop());
    await vi.waitFor(() => expect(server.requests).toHaveLength(1), { timeout: 20_000 });
  });
});
