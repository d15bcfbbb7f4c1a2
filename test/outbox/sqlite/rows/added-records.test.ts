import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EventType } from '../../../../src/contract/events.ts';
import type { SqliteStore } from '../../../../src/outbox/sqlite/rows/sqlite-store.ts';
import { verify } from '../../../../src/webhook/signature.ts';
import { draft, openRows } from '../../../support/in-process-store.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { append, change, event, idsOf, keep, sequencesOf, settle } from '../../../support/outbox/rows.ts';

describe('appending', () => {
  it('gives sequences in the order of the commits, without gaps, and ids that never repeat', () => {
    const { rows } = openRows(new ManualClock());
    const results = [append(rows, '{}', '{}'), append(rows, '{}'), append(rows, '{}', '{}', '{}')];
    expect(results.flatMap(sequencesOf)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(results.flatMap(idsOf)).size).toBe(6);
  });

  it('keeps the body that is sent, signed over its bytes', () => {
    const { rows } = openRows(new ManualClock(), { secret: 'made for this test' });
    append(rows, '{ "price": 1.10, "text":"ü🦊" }');
    const [record] = rows.backlog.untried(0, 10).records;
    expect(record?.body).toContain('"payload":{ "price": 1.10, "text":"ü🦊" }}');
    expect(JSON.parse(record?.body ?? '')).toMatchObject({
      event_id: record?.event_id,
      sandbox_id: 'sb-1',
      team_id: 'team-1',
      sequence: 1,
    });
    expect(verify('made for this test', record?.body ?? '', record?.headers['X-Service-Signature'])).toBe(
      true,
    );
  });

  it('of a sandbox.ready is unneeded while the sandbox is known to be up, and needed again after its end', () => {
    const { rows } = openRows(new ManualClock());
    const offer = (type: EventType) => change(rows, () => rows.added.append(event(type))).outcome;
    expect([
      offer('sandbox.ready'),
      offer('sandbox.ready'),
      offer('sandbox.killed'),
      offer('sandbox.ready'),
    ]).toEqual(['committed', 'unneeded', 'committed', 'committed']);
  });
});

describe('an idempotency key', () => {
  const offer = (rows: SqliteStore, payload: string, key: string) =>
    change(rows, () => rows.added.append({ drafts: [draft(payload, key)] }));

  it('used again with the same payload gives the first record, also in the same transaction', () => {
    const { rows } = openRows(new ManualClock());
    rows.begin();
    const first = rows.added.append({ drafts: [draft('{"a":1}', 'k')] });
    const second = rows.added.append({ drafts: [draft('{"a":1}', 'k')] });
    rows.commit();
    expect(first.outcome).toBe('committed');
    expect(second).toEqual({ ...first, outcome: 'repeated' });
    expect(offer(rows, '{"a":1}', 'k')).toEqual(second);
    expect(rows.counts().pending).toBe(1);
  });

  it('used again with other bytes is a conflict, however alike they are', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (left, right) => {
        const texts = [JSON.stringify({ v: left }), JSON.stringify({ v: right })] as const;
        const { rows, db } = openRows(new ManualClock());
        offer(rows, texts[0], 'k');
        expect(offer(rows, texts[1], 'k').outcome).toBe(texts[0] === texts[1] ? 'repeated' : 'conflict');
        expect(offer(rows, ` ${texts[0]}`, 'k').outcome).toBe('conflict');
        db.close();
      }),
      { numRuns: 15 },
    );
    const { rows } = openRows(new ManualClock());
    offer(rows, '{"payload":{}}', 'k');
    expect(offer(rows, '{}', 'k').outcome).toBe('conflict');
    expect(offer(rows, `{"long":"${'x'.repeat(5_000)}"}`, 'k').outcome).toBe('conflict');
  });

  it('is kept as long as its record', () => {
    const clock = new ManualClock();
    const { rows } = openRows(clock);
    offer(rows, '{"a":1}', 'k');
    settle(rows, 1, { state: 'delivered' });
    expect(offer(rows, '{"a":1}', 'k').outcome).toBe('repeated');
    change(rows, () => rows.finished.prune(keep('delivered', -1, 0), 10));
    expect(offer(rows, '{"a":2}', 'k').outcome).toBe('committed');
  });
});

describe('the bounds', () => {
  it('refuse publishes and file events when so many records are undelivered, and lifecycle events 1 000 later', () => {
    const { rows, db } = openRows(new ManualClock(), { max_records: 3 });
    db.pragma('synchronous = OFF');
    const offer = (type: EventType) => change(rows, () => rows.added.append(event(type))).outcome;
    expect(append(rows, '{}', '{}', '{}').outcome).toBe('committed');
    expect([offer('agent.event'), offer('file.modified')]).toEqual(['full', 'full']);
    const reserve = Array.from({ length: 1_002 }, () => offer('process.started'));
    expect(reserve.filter((outcome) => outcome === 'committed')).toHaveLength(1_000);
    expect(offer('sandbox.killed')).toBe('full');
  });

  it('leave the second half to those who publish: file events use no more than the first', () => {
    const by_number = openRows(new ManualClock(), { max_records: 4 }).rows;
    const offer = (rows: SqliteStore, type: EventType, payload?: string) =>
      change(rows, () => rows.added.append(event(type, payload))).outcome;
    const files = [1, 2, 3].map(() => offer(by_number, 'file.modified'));
    expect(files).toEqual(['committed', 'committed', 'full']);
    const publishes = [1, 2, 3].map(() => offer(by_number, 'agent.event'));
    expect(publishes).toEqual(['committed', 'committed', 'full']);
    const by_bytes = openRows(new ManualClock(), { max_bytes: 10_000 }).rows;
    const payload = `{"text":"${'x'.repeat(3_000)}"}`;
    const large = [1, 2, 3].map(() => offer(by_bytes, 'file.modified', payload));
    expect(large).toEqual(['committed', 'committed', 'full']);
    expect(offer(by_bytes, 'agent.event', payload)).toBe('committed');
  });

  it('take all drafts of an append or none', () => {
    const { rows } = openRows(new ManualClock(), { max_records: 3 });
    expect(append(rows, '{}', '{}').outcome).toBe('committed');
    expect(append(rows, '{}', '{}').outcome).toBe('full');
    expect(rows.counts().pending).toBe(2);
  });

  it('refuse for what is pending alone: file events find their half whatever failed', () => {
    const payload = `{"text":"${'x'.repeat(3_000)}"}`;
    const { rows } = openRows(new ManualClock(), { max_bytes: 10_000 });
    append(rows, payload, payload);
    for (const id of [1, 2]) settle(rows, id, { state: 'failed' });
    const offered = [1, 2, 3].map(
      () => change(rows, () => rows.added.append(event('file.modified', payload))).outcome,
    );
    expect(offered).toEqual(['committed', 'committed', 'full']);
  });

  it('hold for bytes, and a delivery makes room', () => {
    const { rows } = openRows(new ManualClock(), { max_bytes: 5_000 });
    const payload = `{"text":"${'x'.repeat(1_000)}"}`;
    let taken = 0;
    while (append(rows, payload).outcome === 'committed') taken += 1;
    expect(taken).toBeLessThanOrEqual(5);
    expect(change(rows, () => rows.added.append(event('process.exited'))).outcome).toBe('committed');
    for (let id = 1; id <= taken; id++) settle(rows, id, { state: 'delivered' });
    expect(append(rows, payload).outcome).toBe('committed');
  });

  it('for bytes end the reserve, too: a process that restarts for ever does not fill the disk', () => {
    const { rows, db } = openRows(new ManualClock(), { max_bytes: 1_000 });
    db.pragma('synchronous = OFF');
    const payload = `{"text":"${'x'.repeat(500_000)}"}`;
    const outcomes = Array.from(
      { length: 60 },
      () => change(rows, () => rows.added.append(event('process.exited', payload))).outcome,
    );
    expect(outcomes).toContain('full');
  });
});
