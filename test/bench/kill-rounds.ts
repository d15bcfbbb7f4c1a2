import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Bench, Benchmark } from './support/bench.ts';
import type { ConsumerVerbs } from './support/consumer.ts';
import { Daemon, DOWN_URL, SECRET } from './support/daemon.ts';
import type { HandedOverEvent, HandOverVerbs } from './support/hand-over-reader.ts';
import type { LoadVerbs } from './support/load.ts';
import { nowMs, sleepMs } from './support/numbers.ts';
import type { Program } from './support/program.ts';
import { plainReading, spoil, whereabouts } from './support/spoiled-outbox.ts';
import type { Row } from './support/table.ts';

const CONNECTIONS = 8;
/** The longest that publishers run before a kill, and that a daemon lives that is killed wherever that finds it. */
const RUN_MS = 200;
const LIFE_MS = 500;
/** An outbox lives so many rounds, then all it holds is delivered or handed over. */
const ROUNDS_OF_A_LIFE = 25;
const DRAIN_MS = 5_000;
/** Sandboxes at a time. */
const LANES = 4;

/** What became of the events of all lives. */
class Counter {
  readonly rounds = { publish: 0, salvage: 0, 'hand-over': 0, delivery: 0 };
  acknowledged = 0;
  destroyed = 0;
  changed = 0;
  duplicated = 0;
  readonly lost: string[] = [];

  get all_rounds(): number {
    return Object.values(this.rounds).reduce((sum, count) => sum + count, 0);
  }
}

interface Works {
  bench: Bench;
  load: Program<LoadVerbs>;
  consumer: Program<ConsumerVerbs>;
  consumer_url: string;
  tally: Counter;
  wanted: number;
}

/**
 * Kills the daemon at random moments while it publishes, starts after damage, takes over what was damaged, and
 * delivers, and kills whoever reads its outbox for a hand-over. Between rounds bytes of the outbox are changed. An
 * acknowledged event is destroyed where a plain reading of the files gave it before the change and no more after it;
 * every other one must be delivered or handed over in the end, as it was published.
 */
export const killRounds: Benchmark = {
  name: 'killRounds',
  async run(bench) {
    const load = await bench.load();
    const { consumer, url: consumer_url } = await bench.consumer({ port: 0, keeps: true, secret: SECRET });
    const tally = new Counter();
    const works = { bench, load, consumer, consumer_url, tally, wanted: bench.rounds };
    await Promise.all(Array.from({ length: LANES }, (_, lane) => run(works, lane)));
    judge(bench, tally);
  },
};

async function run(works: Works, lane: number): Promise<void> {
  for (let life = 0; works.tally.all_rounds < works.wanted; life++) {
    await new Life(works, (life * LANES + lane) * 10_000_000).run((life + lane) % 2 === 0);
  }
}

class Life {
  readonly #works: Works;
  readonly #scratch: string;
  readonly #state_dir: string;
  /** The numbers of acknowledged events that are neither destroyed nor seen. */
  readonly #expected = new Map<string, number>();
  #next: number;

  constructor(works: Works, first: number) {
    this.#works = works;
    this.#scratch = works.bench.folder();
    this.#state_dir = join(this.#scratch, 'state');
    this.#next = first;
  }

  async run(is_handed_over: boolean): Promise<void> {
    const { tally, wanted } = this.#works;
    for (let round = 0; round < ROUNDS_OF_A_LIFE && tally.all_rounds < wanted; round++) {
      if (round > 0 && Math.random() < 0.4) this.#spoil();
      if (round > 0 && Math.random() < 0.4) await this.#killAnywhere();
      else await this.#publishAndKill();
    }
    if (is_handed_over) await this.#handOver();
    else await this.#deliver();
    for (const event_id of this.#expected.keys()) tally.lost.push(event_id);
    if (this.#expected.size === 0) rmSync(this.#scratch, { recursive: true, force: true });
    else {
      console.log(`  ${this.#expected.size} events of ${this.#state_dir} are missing`);
      for (const line of whereabouts(this.#state_dir, this.#expected)) console.log(`    ${line}`);
    }
  }

  async #publishAndKill(): Promise<void> {
    const { load, tally } = this.#works;
    const daemon = await Daemon.start({ webhook_url: DOWN_URL, state_dir: this.#state_dir });
    const running = load.ask('publish', {
      ...{ url: daemon.url, connections: CONNECTIONS, duration_ms: RUN_MS * 20, keeps: true },
      first: this.#next,
    });
    await sleepMs(Math.random() * RUN_MS);
    await daemon.stop();
    const { kept, next } = await running;
    for (const { event_id, n } of kept) this.#expected.set(event_id, n);
    tally.acknowledged += kept.length;
    this.#next = next;
    tally.rounds.publish += 1;
  }

  /** Mostly while it opens the outbox, or takes over what was damaged. */
  async #killAnywhere(): Promise<void> {
    const life_ms = Math.random() * LIFE_MS;
    await Daemon.startAndKill({ webhook_url: DOWN_URL, state_dir: this.#state_dir }, life_ms);
    this.#works.tally.rounds.salvage += 1;
  }

  #spoil(): void {
    if (!existsSync(this.#state_dir)) return;
    const before = plainReading(this.#state_dir, this.#scratch);
    spoil(this.#state_dir);
    const after = plainReading(this.#state_dir, this.#scratch);
    for (const event_id of this.#expected.keys()) {
      if (!before.has(event_id) || after.has(event_id)) continue;
      this.#expected.delete(event_id);
      this.#works.tally.destroyed += 1;
    }
  }

  async #handOver(): Promise<void> {
    const { tally } = this.#works;
    const killed = await this.#reader();
    const asked = killed.ask('read', this.#state_dir).catch(() => []);
    await sleepMs(Math.random() * 50);
    await killed.stop();
    await asked;
    tally.rounds['hand-over'] += 1;
    await this.#readRest();
  }

  async #readRest(): Promise<void> {
    const reader = await this.#reader();
    this.#take(await reader.ask('read', this.#state_dir));
    await reader.stop();
  }

  #reader(): Promise<Program<HandOverVerbs>> {
    return this.#works.bench.program(new URL('./support/hand-over-reader.ts', import.meta.url));
  }

  async #deliver(): Promise<void> {
    const { consumer, consumer_url: webhook_url, tally } = this.#works;
    await Daemon.startAndKill({ webhook_url, state_dir: this.#state_dir }, LIFE_MS * 2 * Math.random());
    tally.rounds.delivery += 1;
    const daemon = await Daemon.start({ webhook_url, state_dir: this.#state_dir });
    for (const end_ms = nowMs() + DRAIN_MS; nowMs() < end_ms; await sleepMs(100)) {
      if ((await daemon.outbox()).pending === 0) break;
    }
    await daemon.stop('SIGTERM');
    const received = await consumer.ask('received', null);
    this.#take(received.filter(({ event_id }) => this.#expected.has(event_id)));
    // What is in backoff for longer is still in the outbox.
    if (this.#expected.size > 0) await this.#readRest();
  }

  #take(events: HandedOverEvent[]): void {
    const { tally } = this.#works;
    const seen = new Set<string>();
    for (const { event_id, n, is_whole } of events) {
      if (seen.has(event_id)) tally.duplicated += 1;
      seen.add(event_id);
      const published = this.#expected.get(event_id);
      if (!is_whole || (published !== undefined && published !== n)) tally.changed += 1;
      this.#expected.delete(event_id);
    }
  }
}

function judge(bench: Bench, tally: Counter): void {
  const { publish, salvage, 'hand-over': hand_over, delivery } = tally.rounds;
  const name = `kill -9 and damage, ${tally.all_rounds} rounds`;
  const row = (what: string, count: number): Row => ({
    name: `${name}: ${what}`,
    ...{ bare: '', ours: String(count), ratio: '', wanted: '0', verdict: count === 0 ? 'ok' : 'broken' },
  });
  const shown = `${publish} publish, ${salvage} start and salvage, ${hand_over} hand-over, ${delivery} delivery`;
  bench.report({
    name: `${name}: acknowledged`,
    ...{ bare: shown, ours: String(tally.acknowledged), ratio: '', verdict: 'ok' },
    wanted: `${tally.destroyed} of them destroyed by damage`,
  });
  bench.report(row('lost', tally.lost.length));
  bench.report(row('changed', tally.changed));
  bench.report(row('handed over twice', tally.duplicated));
}
