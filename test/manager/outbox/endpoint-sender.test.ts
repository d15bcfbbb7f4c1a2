import { describe, expect, it } from 'vitest';
import { standardWebhookHeaders } from '../../../src/webhook/signature.ts';
import { deliver } from '../../support/manager/delivering.ts';
import { SECRET, undeliveredRecord, webhookTargetOf } from '../../support/manager/outbox.ts';

const MINUTE_MS = 60_000;

describe('an attempt at a deletion', () => {
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
});

describe('a record that cannot be sent as it is stored', () => {
  it('is attempted without a request, and its attempt and the log say why', async () => {
    const { clock, database, delivery, deleted, sent, logged, states } = await deliver(() => 503);
    await deleted();
    await clock.advance(0);
    expect(sent).toHaveLength(1);
    await database.db.updateTable('outbox').set({ headers: '{' }).execute();
    await clock.advance(10_000);
    expect(sent).toHaveLength(1);
    const [shown] = (await delivery.views.list('team_1', { limit: 1 })).deliveries;
    expect(shown?.attempt_count).toBeGreaterThan(1);
    expect(shown).toMatchObject({
      last_error: 'protocol',
      last_error_detail: 'the record cannot be sent as it is stored',
    });
    expect(logged.map(({ msg }) => msg)).toContain('a record cannot be sent as stored');
    expect(await states()).toEqual(['pending']);
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

describe('what was handed over of a team that has a rate', () => {
  it('is charged with its head, waits while the team is held, and delays no other team and no deletion', async () => {
    const charged: [string, number][] = [];
    const free: (() => void)[] = [];
    let held = ['team_1'];
    const { clock, handOver, deleted, sent } = await deliver(() => 200, {
      has_rate: true,
      held: () => held,
      onFree: (call) => void free.push(call),
      sent: ({ team_id }, bytes) => void charged.push([team_id, bytes]),
    });
    await handOver(webhookTargetOf(), [undeliveredRecord(7), undeliveredRecord(8)]);
    await handOver(webhookTargetOf({ sandbox_id: 'sb_2', team_id: 'team_2' }), [undeliveredRecord(9)]);
    await deleted({ sandbox_id: 'sb_3' });
    await clock.advance(5_000);
    expect(sent.map(({ sequence }) => sequence).sort()).toEqual([9, Number.NaN]);
    const [other] = sent.filter(({ sequence }) => sequence === 9);
    const { headers, body } = other?.request ?? { headers: {}, body: '' };
    const head = Object.entries(headers).reduce(
      (sum, [name, value]) => sum + name.length + value.length + 4,
      0,
    );
    expect(charged).toEqual([['team_2', head + body.length]]);
    held = [];
    for (const call of free) call();
    await clock.advance(1_000);
    expect(sent.slice(2).map(({ sequence }) => sequence)).toEqual([7, 8]);
    expect(charged.map(([team_id]) => team_id)).toEqual(['team_2', 'team_1', 'team_1']);
  });
});
