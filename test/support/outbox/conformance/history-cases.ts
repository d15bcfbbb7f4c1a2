import { expect } from 'vitest';
import { RETRY_AFTER_CAP_MS } from '../../../../src/contract/defaults.ts';
import { FINAL_STATES, type FinalState } from '../../../../src/contract/words.ts';
import type { DueRecord } from '../../../../src/outbox/store.ts';
import type { Decision } from '../../../../src/webhook/retry.ts';
import { Random } from '../../random.ts';
import { type Case, idsOf, type OutboxUnderTest, outcomeOf, retryAt } from './outbox-under-test.ts';

const STEPS = 60;
const SEEDS = [1, 2, 3];
const ALL = 1_000;
/** How far time goes at a step, at most: in all it is more than a window, so that some end. */
const STEP_MS = 8 * 3_600_000;
/** No record waits longer for its next attempt. */
const RETRY_MS = RETRY_AFTER_CAP_MS;

/** A record as the port promises it to be. */
interface Expected {
  event_id: string;
  state: 'pending' | FinalState;
  attempts: number;
  failures: number;
  /** Null before the first attempt, and once it is final. */
  due_ms: number | null;
  probe_ms: number;
  deadline_ms: number;
}

/** A random history of one outbox, kept twice: by the engine, and as a list in memory. */
class History {
  readonly #random: Random;
  #outbox: OutboxUnderTest;
  /** In commit order. */
  readonly #expected: Expected[] = [];
  /** Read, and not attempted yet. */
  #untried: DueRecord[] = [];
  #last_read_id = 0;

  constructor(outbox: OutboxUnderTest, seed: number) {
    this.#outbox = outbox;
    this.#random = new Random(seed);
  }

  async step(): Promise<void> {
    const random = this.#random;
    const steps = [
      () => this.#append(),
      () => this.#attemptUntried(),
      () => this.#attemptUntried(),
      () => this.#attemptDue(),
      () => this.#attemptDue(),
      () => this.#replay(),
      () => this.#outbox.advance(random.below(STEP_MS)),
      () => (random.chance(0.3) ? this.#restart() : this.#append()),
    ];
    await random.pick(steps)();
    await this.#compare();
  }

  async #append(): Promise<void> {
    const event_ids = await this.#outbox.append(1 + this.#random.below(4));
    await this.#readUntried(event_ids);
    for (const record of this.#untried.slice(-event_ids.length)) {
      const { event_id, deadline_ms } = record;
      const counts = { attempts: 0, failures: 0, due_ms: null, probe_ms: 0 };
      this.#expected.push({ event_id, state: 'pending', deadline_ms, ...counts });
    }
  }

  async #readUntried(event_ids: string[]): Promise<void> {
    const { records, more } = await this.#outbox.store.untried(this.#last_read_id, ALL);
    expect([idsOf(records), more]).toEqual([event_ids, false]);
    this.#untried.push(...records);
    this.#last_read_id = records.at(-1)?.id ?? this.#last_read_id;
  }

  async #attemptUntried(): Promise<void> {
    const [record] = this.#untried.splice(this.#random.below(this.#untried.length), 1);
    if (record) await this.#attempt(record);
  }

  async #attemptDue(): Promise<void> {
    const { records } = await this.#outbox.store.due(ALL);
    if (records.length > 0) await this.#attempt(this.#random.pick(records));
  }

  async #attempt(record: DueRecord): Promise<void> {
    const random = this.#random;
    const expected = this.#of(record.event_id);
    const { attempts, failures, deadline_ms } = expected;
    expect(record).toMatchObject({ attempts, failures, deadline_ms });
    const now_ms = this.#outbox.store.now();
    const [due_ms, probe_ms] = [now_ms + random.below(RETRY_MS), now_ms + random.below(RETRY_MS)];
    const is_final = random.chance(0.4);
    const decision: Decision = is_final ? { state: random.pick(FINAL_STATES) } : retryAt(due_ms, probe_ms);
    await this.#outbox.store.record(outcomeOf(record, decision));
    expected.state = decision.state;
    expected.attempts += 1;
    expected.failures += 1;
    expected.due_ms = is_final ? null : due_ms;
    expected.probe_ms = probe_ms;
  }

  async #replay(): Promise<void> {
    if (this.#expected.length === 0) return;
    const expected = this.#random.pick(this.#expected);
    await this.#outbox.replay(expected.event_id);
    if (expected.state === 'pending') return;
    const now_ms = this.#outbox.store.now();
    const deadline_ms = now_ms + this.#outbox.window_ms;
    Object.assign(expected, { state: 'pending', failures: 0, due_ms: now_ms, probe_ms: now_ms, deadline_ms });
  }

  async #restart(): Promise<void> {
    this.#outbox = await this.#outbox.restart();
    this.#untried = [];
    this.#last_read_id = 0;
    const untried = this.#expected.filter(({ state, attempts }) => state === 'pending' && attempts === 0);
    await this.#readUntried(idsOf(untried));
  }

  #of(event_id: string): Expected {
    return this.#expected.find((each) => each.event_id === event_id) as Expected;
  }

  async #compare(): Promise<void> {
    const { store, list, counts } = this.#outbox;
    const now_ms = store.now();
    const tried = this.#expected.flatMap((each) =>
      each.due_ms === null ? [] : [{ ...each, due_ms: each.due_ms }],
    );
    const by_due = tried.toSorted((a, b) => a.due_ms - b.due_ms);
    expect(await this.#read('due')).toEqual({
      ids: idsOf(by_due.filter(({ due_ms }) => due_ms <= now_ms)),
      next_ms: by_due.find(({ due_ms }) => due_ms > now_ms)?.due_ms ?? null,
    });
    const by_deadline = tried.toSorted((a, b) => a.deadline_ms - b.deadline_ms);
    const overdue = await this.#read('overdue');
    expect({ ...overdue, ids: overdue.ids.toSorted() }).toEqual({
      ids: idsOf(by_deadline.filter(({ deadline_ms }) => deadline_ms <= now_ms)).toSorted(),
      next_ms: by_deadline.find(({ deadline_ms }) => deadline_ms > now_ms)?.deadline_ms ?? null,
    });
    const probe = await store.probeCandidate([]);
    expect(probe?.probe_ms ?? null).toBe(
      tried.length > 0 ? Math.min(...tried.map(({ probe_ms }) => probe_ms)) : null,
    );
    const shown = (await list({ limit: ALL })).deliveries.toReversed();
    expect(shown.map(({ event_id, state, attempt_count }) => [event_id, state, attempt_count])).toEqual(
      this.#expected.map(({ event_id, state, attempts }) => [event_id, state, attempts]),
    );
    const pending = this.#expected.filter(({ state }) => state === 'pending').length;
    expect((await counts()).pending).toBe(pending);
  }

  async #read(verb: 'due' | 'overdue'): Promise<{ ids: string[]; next_ms: number | null }> {
    const answer: Record<string, unknown> & { records: DueRecord[] } = await this.#outbox.store[verb](ALL);
    const next_ms = answer[verb === 'due' ? 'next_due_ms' : 'next_deadline_ms'] as number | null;
    return { ids: idsOf(answer.records), next_ms };
  }
}

/** The promises together, in an order that nobody thought of. */
export const HISTORY_CASES: Case[] = SEEDS.map((seed) => ({
  name: `whatever is done in any order, the outbox says what a list in memory says (seed ${seed})`,
  takes_time: true,
  async run(outbox) {
    const history = new History(outbox, seed);
    for (let i = 0; i < STEPS; i++) await history.step();
  },
}));
