import { join } from 'node:path';
import type { Bench, Benchmark } from './support/bench.ts';
import type { Received } from './support/consumer.ts';
import { SECRET } from './support/daemon.ts';
import type { Acknowledged } from './support/load.ts';
import { nowMs, percentile, sleepMs } from './support/numbers.ts';
import { figure, type Row } from './support/table.ts';

const PUBLISHERS = 32;
/** The longest that publishers run before a kill. */
const RUN_MS = 400;
/** A request whose answer was so long before the kill was no longer in flight: its mark had to be on disk. */
const IN_FLIGHT_MS = 50;
/** What the daemon sent just before its end may come to the consumer so much after it. */
const UNDERWAY_MS = 100;
const DRAIN_MS = 60_000;

interface Kill {
  killed_ms: number;
  ended_ms: number;
}

/** Ends the daemon at random moments under load; what it acknowledged must arrive, whole. */
export const kill: Benchmark = {
  name: 'kill',
  async run(bench) {
    const { consumer, url: webhook_url } = await bench.consumer({ port: 0, keeps: true, secret: SECRET });
    const load = await bench.load();
    const state_dir = join(bench.folder(), 'state');
    const acknowledged: Acknowledged[] = [];
    const kills: Kill[] = [];
    let first = 0;
    for (let round = 0; round < bench.rounds; round++) {
      const daemon = await bench.daemon({ webhook_url, state_dir });
      const shape = {
        url: daemon.url,
        connections: PUBLISHERS,
        duration_ms: RUN_MS * 10,
        keeps: true,
        first,
      };
      const running = load.ask('publish', shape);
      await sleepMs(Math.random() * RUN_MS);
      const killed_ms = nowMs();
      await daemon.stop();
      kills.push({ killed_ms, ended_ms: nowMs() });
      const { kept, next } = await running;
      acknowledged.push(...kept);
      first = next;
    }
    const daemon = await bench.daemon({ webhook_url, state_dir });
    for (const end_ms = nowMs() + DRAIN_MS; nowMs() < end_ms; await sleepMs(200)) {
      if ((await daemon.outbox()).pending === 0) break;
    }
    judge(bench, acknowledged, await consumer.ask('received', null), kills);
  },
};

function judge(bench: Bench, acknowledged: Acknowledged[], received: Received[], kills: Kill[]): void {
  const by_id = new Map(received.map((event) => [event.event_id, event]));
  const lost = acknowledged.filter(({ event_id }) => !by_id.has(event_id)).length;
  const changed = received.filter(({ is_whole }) => !is_whole).length;
  const mixed = acknowledged.filter(({ event_id, n }) => (by_id.get(event_id) ?? { n }).n !== n).length;
  const sequences = new Set(received.map(({ sequence }) => sequence));
  const gaps = Math.max(0, ...sequences) - sequences.size;
  const name = `kill -9, ${kills.length} rounds, ${figure(acknowledged.length)} acknowledged`;
  const row = (what: string, count: number): Row => ({
    name: `${name}: ${what}`,
    ...{ bare: '', ours: String(count), ratio: '', wanted: '0', verdict: count === 0 ? 'ok' : 'broken' },
  });
  bench.report(row('lost', lost));
  bench.report(row('changed', changed + mixed));
  bench.report(row('gaps in the sequence', gaps));

  const ages_ms = duplicateAges(received, kills);
  const late = ages_ms.filter((age_ms) => age_ms > IN_FLIGHT_MS).length;
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => figure(percentile(ages_ms, share)));
  bench.report({
    ...row(`duplicates not in flight`, late),
    bare: `${ages_ms.length} duplicates`,
    ours: ages_ms.length === 0 ? '0' : `${late}; p50 ${p50}, p99 ${p99}, max ${most} ms before the kill`,
  });
}

/** For each repetition: how long before the kill that caused it the earlier request had come. */
function duplicateAges(received: Received[], kills: Kill[]): number[] {
  return received.flatMap(({ arrived_ms }) =>
    arrived_ms.slice(1).map((_later, i) => {
      const earlier_ms = arrived_ms[i] as number;
      const cause = kills.find(({ ended_ms }) => ended_ms + UNDERWAY_MS >= earlier_ms);
      return cause ? Math.max(0, cause.killed_ms - earlier_ms) : Number.POSITIVE_INFINITY;
    }),
  );
}
