import { expect, it } from 'vitest';
import { sign } from '../../../src/webhook/signature.ts';
import {
  noticeOf,
  outcomeOf,
  SEAL,
  SECRET,
  undeliveredRecord,
  webhookTargetOf,
} from '../../support/manager/outbox.ts';
import { ENDPOINT, openBench } from '../../support/manager/outbox-bench.ts';
import { describeOnStores } from '../../support/stores.ts';

const HOUR_MS = 3_600_000;

describeOnStores("the records of the manager's outbox", (fresh) => {
  it('keeps the exact signed request of a deletion, and nothing of the secret', async () => {
    const { database, clock, outbox, views } = await openBench(await fresh());
    const notice = noticeOf(clock.wallMs(), { webhook_secret: SECRET, reason: 'ttl_expired', actor: null });
    await database.db.transaction().execute((tx) => outbox.insertDeleted(tx, notice));
    const row = await database.db.selectFrom('outbox').selectAll().executeTakeFirstOrThrow();
    const event_id = row.event_id;
    expect(event_id).toMatch(/^evt_[0-9a-f-]{36}$/);
    expect(row.body).toBe(
      `{"event_id":"${event_id}","event_type":"sandbox.deleted","timestamp":"2026-01-01T00:00:00.000Z",` +
        `"sandbox_id":"sb_1","team_id":"team_1","payload":{"reason":"ttl_expired","actor":null}}`,
    );
    expect(JSON.parse(row.headers)).toEqual({
      'Content-Type': 'application/json',
      'User-Agent': expect.stringMatching(/^sandbox-manager\/\d/),
      'X-Service-Signature': sign(SECRET, row.body),
      'ce-specversion': '1.0',
      'ce-id': event_id,
      'ce-source': '/sandboxes/sb_1',
      'ce-type': 'sandbox.deleted',
      'ce-time': '2026-01-01T00:00:00.000Z',
    });
    expect(JSON.parse(row.signatures ?? '')).toHaveLength(360);
    expect(row.url).toBe('http://consumer.invalid/hook?key=1');
    expect(row.endpoint).toBe(ENDPOINT);
    expect(JSON.stringify(row)).not.toContain(SECRET.slice(6));
    expect(await views.find('team_1', event_id)).toMatchObject({ state: 'pending', sequence: null });
  });

  it('keeps nothing of a deletion that is taken back', async () => {
    const { database, clock, outbox } = await openBench(await fresh());
    const failing = database.db.transaction().execute(async (tx) => {
      await outbox.insertDeleted(tx, noticeOf(clock.wallMs()));
      throw new Error('on purpose');
    });
    await expect(failing).rejects.toThrow('on purpose');
    expect(await database.db.selectFrom('outbox').selectAll().execute()).toEqual([]);
  });

  it('takes records over as they are, once, with their attempts going on', async () => {
    const { database, outbox, views, owned } = await openBench(await fresh());
    const attempt = {
      attempt: 1,
      started_at_ms: 1_000,
      duration_ms: 2,
      status: null,
      error: 'dns' as const,
      next_attempt_at_ms: 2_000,
      error_detail: 'no such host (ENOTFOUND no.invalid)',
      response_body: null,
    };
    const tried = undeliveredRecord(2, {
      attempts: 1,
      failures: 1,
      due_in_ms: 500,
      probe_in_ms: 300,
      attempt_log: [attempt],
    });
    const given = [undeliveredRecord(1), tried];
    const sender = webhookTargetOf({ webhook_secret: SECRET, retry: 'any' });
    for (let i = 0; i < 2; i++) {
      await database.db.transaction().execute(async (tx) => {
        await outbox.takeOverAttempts(tx, await outbox.takeOver(tx, sender, given));
      });
    }
    const page = await views.list('team_1', { limit: 10 });
    expect(page.deliveries.map(({ event_id, sequence }) => [event_id, sequence])).toEqual([
      [tried.event_id, 2],
      [given[0]?.event_id, 1],
    ]);
    const detail = await views.find('team_1', tried.event_id);
    expect(detail).toMatchObject({ body: tried.body, headers: tried.headers, sandbox_id: 'sb_1' });
    expect(detail?.attempts).toEqual([
      expect.objectContaining({
        attempt: 1,
        error: 'dns',
        error_detail: attempt.error_detail,
        next_attempt_at: '1970-01-01T00:00:02.000Z',
      }),
    ]);
    const records = await owned();
    expect((await records.untried(0, 10)).records).toHaveLength(1);
    const probe = await records.probeCandidate([]);
    expect(probe).toMatchObject({ event_id: tried.event_id, attempts: 1, failures: 1 });
    const stored = probe && (await records.load(probe));
    expect(stored).toMatchObject({ body: tried.body, signatures: null, retry: 'any' });
    expect(stored?.secret_sealed).not.toContain(SECRET);
    expect(SEAL.open(stored?.secret_sealed ?? '', `outbox:${tried.event_id}`)).toBe(SECRET);
  });

  it('removes final records 24 h after they ended, with their attempts, and nothing that is pending', async () => {
    const { database, deleted, owned, outbox, clock } = await openBench(await fresh());
    for (const id of ['sb_1', 'sb_2']) await deleted(id);
    const records = await owned();
    const [record] = (await records.untried(0, 1)).records;
    if (record) await records.record(outcomeOf(record, { state: 'delivered' }));
    await clock.advance(24 * HOUR_MS - 1);
    expect(await outbox.prune(10)).toBe(0);
    await clock.advance(1);
    expect(await outbox.prune(10)).toBe(1);
    const left = await database.db.selectFrom('outbox').select(['sandbox_id', 'state']).execute();
    expect(left).toEqual([{ sandbox_id: 'sb_2', state: 'pending' }]);
    expect(await database.db.selectFrom('outbox_attempts').selectAll().execute()).toEqual([]);
  });
});
