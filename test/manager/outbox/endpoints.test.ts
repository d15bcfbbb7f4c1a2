import { describe, expect, it } from 'vitest';
import { deliver } from '../../support/manager/delivering.ts';
import type { Sent } from '../../support/scripted-transport.ts';

const MINUTE_MS = 60_000;

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
    expect(await gauge(delivery, 'endpoints_owned')).toBe(3);
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
    expect(await gauge(delivery, 'endpoints_backing_off')).toBe(1);
    expect(delivery.troubles()).toEqual(['1 webhook endpoint is in backoff: the log says which, and why']);
    await deleted(at('up'));
    await clock.advance(0);
    expect(sent.filter((each) => pathOf(each) === 'up')).toHaveLength(1);
    await clock.advance(5 * MINUTE_MS);
    expect(sent.length - during).toBeLessThan(20);
    expect(await states()).toContain('pending');
  });

  it('are rejecting when they refuse every event, and sent on at full speed', async () => {
    const { clock, deleted, sent, delivery } = await deliver(() => 401);
    for (let i = 0; i < 30; i++) await deleted();
    await clock.advance(0);
    expect(sent).toHaveLength(30);
    expect(await gauge(delivery, 'endpoints_rejecting')).toBe(1);
    expect(delivery.troubles()).toEqual(['1 webhook endpoint is rejecting: the log says which, and why']);
  });

  it('are given back when they have nothing to do, and taken again', async () => {
    const { clock, deleted, sent, database, delivery } = await deliver(() => 204);
    await deleted();
    await clock.advance(15_000);
    expect(await gauge(delivery, 'endpoints_owned')).toBe(0);
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
