import { describe, expect, it } from 'vitest';
import { COMMIT_TIMEOUT_MS } from '../../../src/contract/defaults.ts';
import { ClientBatches } from '../../../src/outbox/sqlite/client-batches.ts';
import type { Batch } from '../../../src/outbox/sqlite/messages.ts';
import type { AppendResult } from '../../../src/outbox/store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { delivered, one } from '../../support/outbox/writer.ts';

const COMMITTED: AppendResult = { outcome: 'committed', records: [{ event_id: 'evt_1', sequence: 1 }] };

/** Batches whose messages a test receives in place of the writer. */
function collect(wantsRecords = () => false) {
  const clock = new ManualClock();
  const sent: Batch[] = [];
  const batches = new ClientBatches({ clock, post: (batch) => sent.push(batch), wantsRecords });
  const outcomes: string[] = [];
  const append = (each = one()) => {
    void batches.append(each).then(({ outcome }) => outcomes.push(outcome));
  };
  const answer = ({ batch, appends }: Batch, is_recorded = true) => {
    batches.noteAnswer();
    batches.resolve({ batch, results: appends.map(() => COMMITTED), is_recorded });
  };
  return { clock, sent, batches, outcomes, append, answer };
}

describe('what one turn asks for', () => {
  it('is one batch, appends and outcomes together, in their order', async () => {
    const { clock, sent, batches, append } = collect(() => true);
    void batches.record(delivered(7));
    for (const payload of ['{"n":1}', '{"n":2}', '{"n":3}']) append(one(payload));
    expect(sent).toEqual([]);
    await clock.advance(0);
    expect(sent).toMatchObject([{ batch: 1, wants_records: true, outcomes: [{ id: 7 }] }]);
    expect(sent[0]?.appends.map(({ drafts }) => drafts[0]?.payload)).toEqual([
      '{"n":1}',
      '{"n":2}',
      '{"n":3}',
    ]);
    append();
    await clock.advance(0);
    expect(sent.map(({ batch }) => batch)).toEqual([1, 2]);
  });

  it('goes to an idle writer with the eighth append, and to a busy one at the end of the turn', async () => {
    const { clock, sent, append } = collect();
    for (let i = 0; i < 20; i++) append();
    expect(sent.map(({ appends }) => appends.length)).toEqual([8]);
    await clock.advance(0);
    expect(sent.map(({ appends }) => appends.length)).toEqual([8, 12]);
  });

  it('waits for an append for some milliseconds where it is outcomes alone, up to 128 of them', async () => {
    const { clock, sent, batches } = collect();
    void batches.record(delivered(1));
    await clock.advance(4);
    expect(sent).toEqual([]);
    await clock.advance(1);
    expect(sent.map(({ outcomes }) => outcomes.length)).toEqual([1]);
    for (let id = 2; id <= 129; id++) void batches.record(delivered(id));
    await clock.advance(0);
    expect(sent.map(({ outcomes }) => outcomes.length)).toEqual([1, 128]);
  });

  it('is sent a part a turn where the pace says so, and as a whole by a flush in a loop', async () => {
    const { clock, sent, batches, append } = collect();
    batches.paceAppends(() => 2);
    for (let i = 0; i < 5; i++) append();
    await clock.advance(0);
    expect(sent.map(({ appends }) => appends.length)).toEqual([2, 2, 1]);
    for (let i = 0; i < 5; i++) append();
    expect([batches.flush(), batches.flush(), batches.flush(), batches.flush()]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(sent.flatMap(({ appends }) => appends)).toHaveLength(10);
  });
});

describe('an answer', () => {
  it('resolves the appends at once, and the outcomes when they are on disk', async () => {
    const { clock, sent, batches, outcomes, append, answer } = collect();
    const recorded: number[] = [];
    void batches.record(delivered(1)).then(() => recorded.push(1));
    append();
    await clock.advance(0);
    const [batch] = sent as [Batch];
    expect(batches.addedTypes({ batch: 1, results: [COMMITTED], is_recorded: false })).toEqual([
      'agent.event',
    ]);
    answer(batch, false);
    await clock.advance(0);
    expect([outcomes, recorded]).toEqual([['committed'], []]);
    batches.resolve({ batch: 1, results: [], is_recorded: true });
    await clock.advance(0);
    expect(recorded).toEqual([1]);
    expect(clock.timers).toBe(0);
  });

  it('that does not come in time makes its appends unavailable, but not those of the watched tree', async () => {
    const { clock, sent, batches, outcomes, append, answer } = collect();
    append();
    append({ ...one(), tree: { put: [], drop: [] } });
    await clock.advance(1_000);
    expect(batches.waitingMs()).toBe(1_000);
    await clock.advance(COMMIT_TIMEOUT_MS - 1_001);
    expect([batches.is_stuck, outcomes]).toEqual([false, []]);
    await clock.advance(1);
    expect([batches.is_stuck, outcomes]).toEqual([true, ['unavailable']]);
    expect(batches.waitingMs()).toBe(COMMIT_TIMEOUT_MS);
    answer((sent as [Batch])[0]);
    await clock.advance(0);
    expect([batches.is_stuck, outcomes]).toEqual([false, ['unavailable', 'committed']]);
    expect(batches.waitingMs()).toBe(0);
  });

  it('is still awaited in full after a stop of the whole program', async () => {
    const { clock, sent, batches, outcomes, append, answer } = collect();
    append();
    await clock.advance(5_000);
    clock.freeze(60_000);
    // Timers run before the answer is read that has come meanwhile.
    await clock.advance(COMMIT_TIMEOUT_MS - 1);
    expect([batches.is_stuck, outcomes]).toEqual([false, []]);
    answer((sent as [Batch])[0]);
    await clock.advance(60_000);
    expect([batches.is_stuck, outcomes, clock.timers]).toEqual([false, ['committed'], 0]);
  });

  it.each(
    [0, 400, 4_900, 9_000, 9_490].flatMap((at) =>
      [9_500, 10_000, 11_000].map((for_ms) => [at, for_ms] as const),
    ),
  )(
    'that comes right after a stop at %i ms, of %i ms, is the one that callers get',
    async (at_ms, for_ms) => {
      const { clock, sent, outcomes, append, answer } = collect();
      append();
      await clock.advance(at_ms);
      append();
      await clock.advance(0);
      clock.freeze(for_ms);
      await clock.advance(1);
      for (const batch of sent) answer(batch);
      await clock.advance(0);
      expect(outcomes).toEqual(['committed', 'committed']);
    },
  );

  it('that can never come makes everything that was sent unavailable', async () => {
    const { clock, batches, outcomes, append } = collect();
    for (let i = 0; i < 3; i++) append();
    await clock.advance(0);
    batches.giveUpAll();
    await clock.advance(0);
    expect(outcomes).toEqual(['unavailable', 'unavailable', 'unavailable']);
  });
});

describe('a batch', () => {
  it('takes some thousand appends and some MiB at most; the rest follows in the next ones', async () => {
    const { clock, sent, append } = collect();
    for (let i = 0; i < 8; i++) append();
    for (let i = 0; i < 5_000; i++) append();
    for (let turn = 0; turn < 3; turn++) await clock.advance(0);
    expect(sent.map(({ appends }) => appends.length)).toEqual([8, 2_048, 2_048, 904]);
    const payload = `"${'x'.repeat(3 * 1024 * 1024)}"`;
    for (let i = 0; i < 5; i++) append(one(payload));
    for (let turn = 0; turn < 3; turn++) await clock.advance(0);
    expect(sent.slice(4).map(({ appends }) => appends.length)).toEqual([2, 2, 1]);
  });

  it('is given up by the time since its appends were asked for, not since it was sent', async () => {
    const { clock, sent, batches, append, outcomes } = collect();
    batches.paceAppends(() => (clock.monotonicMs() === 0 ? 1 : 100));
    for (let i = 0; i < 2; i++) append();
    await clock.advance(0);
    expect(sent.map(({ appends }) => appends.length)).toEqual([1, 1]);
    await clock.advance(COMMIT_TIMEOUT_MS);
    expect(outcomes).toEqual(['unavailable', 'unavailable']);
  });
});
