import { describe, expect, it, onTestFinished } from 'vitest';
import { AttemptBudget } from '../../../src/manager/outbox/attempt-budget.ts';
import { EndpointDelivery } from '../../../src/manager/outbox/endpoint-delivery.ts';
import type { OwnedEndpoint } from '../../../src/manager/outbox/endpoint-store.ts';
import { noticeOf, SEAL, SILENT, undeliveredRecord, webhookTargetOf } from '../../support/manager/outbox.ts';
import { ENDPOINT, openBench } from '../../support/manager/outbox-bench.ts';
import { scratchFolder } from '../../support/scratch.ts';
import { type Answer, ScriptedTransport } from '../../support/scripted-transport.ts';

/** The delivery to one endpoint; whether it holds the lease is the test's to say. */
async function delivering(answer: () => Answer) {
  const bench = await openBench(`sqlite:${scratchFolder()}/manager.db`);
  const { database, clock, now, outcomes } = bench;
  const store = bench.replica();
  await store.register();
  const [owned] = (await store.claim([ENDPOINT])) as [OwnedEndpoint];
  const transport = new ScriptedTransport(clock, answer);
  const state = { has_lease: true, given_up: 0 };
  const budget = new AttemptBudget();
  const delivery = new EndpointDelivery(
    owned,
    {
      database,
      clock: now,
      outcomes,
      budget,
      log: SILENT,
      seal: SEAL,
      makeTransport: () => transport,
      onAttempt: () => {},
    },
    () => state.has_lease,
    () => {
      state.given_up += 1;
    },
  );
  onTestFinished(() => delivery.stop());
  await delivery.start();
  await clock.advance(0);
  const newest = async () => {
    const [pending] = await store.pending();
    return pending ?? { endpoint: ENDPOINT, owner: null, newest_untried_id: null, first_due_ms: null };
  };
  /** One poll, and what follows from it. */
  const poll = async () => {
    delivery.polled(await newest());
    await clock.advance(0);
  };
  return { ...bench, delivery, transport, state, poll, store, owned, budget };
}

describe('the delivery to one endpoint', () => {
  it('sends what another replica committed once a poll tells of it', async () => {
    const { deleted, poll, transport } = await delivering(() => 204);
    await deleted('sb_1');
    expect(transport.sent).toEqual([]);
    await poll();
    expect(transport.sent).toHaveLength(1);
    await poll();
    expect(transport.sent).toHaveLength(1);
  });

  it('reads a few polls longer than there is news: an older record may become visible later', async () => {
    const { database, deleted, poll, transport } = await delivering(() => 'hang');
    await deleted('sb_1');
    const show = (endpoint: string) =>
      database.db.updateTable('outbox').set({ endpoint }).where('id', '=', 1);
    await show('elsewhere').execute();
    await deleted('sb_2');
    await poll();
    expect(transport.sent).toHaveLength(1);
    await show(ENDPOINT).execute();
    // The newest record is the same: its attempt hangs.
    await poll();
    expect(transport.sent).toHaveLength(2);
  });

  it('starts no attempt without a lease, and goes on when there is one again', async () => {
    const { clock, deleted, delivery, state, transport, budget } = await delivering(() => 204);
    state.has_lease = false;
    await deleted('sb_1');
    delivery.committed();
    await clock.advance(1_000);
    expect(transport.sent).toEqual([]);
    state.has_lease = true;
    budget.wake();
    await clock.advance(0);
    expect(transport.sent).toHaveLength(1);
  });

  it('is given up once the database says that another replica owns the endpoint', async () => {
    const { clock, database, deleted, delivery, state, transport } = await delivering(() => 204);
    await deleted('sb_1');
    await database.db.updateTable('outbox_endpoints').set({ fence: 9e15 }).execute();
    delivery.committed();
    await clock.advance(1_000);
    expect(transport.sent).toEqual([]);
    expect(state.given_up).toBeGreaterThan(0);
  });

  it("tries what was handed over again by its sandbox's classes, and sandbox.deleted by its own", async () => {
    const { clock, database, outbox, delivery, transport, views } = await delivering(() => 401);
    const sender = webhookTargetOf({ retry: 'any' });
    await database.db.transaction().execute(async (tx) => {
      await outbox.takeOver(tx, sender, [undeliveredRecord(1)]);
      await outbox.insertDeleted(tx, noticeOf(clock.wallMs(), { retry: 'any' }));
    });
    delivery.committed();
    await clock.advance(10_000);
    const { deliveries } = await views.list('team_1', { limit: 10 });
    expect(deliveries.map(({ event_type, state }) => [event_type, state])).toEqual([
      ['sandbox.deleted', 'failed'],
      ['agent.event', 'pending'],
    ]);
    expect(transport.sent.length).toBeGreaterThan(4);
  });

  it('tells the health of its endpoint', async () => {
    let answer: Answer = 503;
    const { clock, deleted, delivery } = await delivering(() => answer);
    for (const id of ['sb_1', 'sb_2', 'sb_3']) await deleted(id);
    delivery.committed();
    await clock.advance(0);
    expect(delivery.health).toBe('backing_off');
    answer = 204;
    await clock.advance(2_000);
    expect(delivery.health).toBe('ok');
    expect(delivery.under_way).toBe(0);
  });

  it('starts nothing more once it is paused, and counts what is under way', async () => {
    const { clock, deleted, delivery, transport } = await delivering(() => ({ status: 204, after_ms: 500 }));
    await deleted('sb_1');
    delivery.committed();
    await clock.advance(0);
    delivery.pause();
    await deleted('sb_2');
    delivery.committed();
    await clock.advance(0);
    expect([delivery.under_way, transport.sent.length]).toEqual([1, 1]);
    await clock.advance(500);
    expect([delivery.under_way, transport.sent.length]).toEqual([0, 1]);
  });
});
