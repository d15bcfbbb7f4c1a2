import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SharedCounts } from '../../../src/network/meter/counts.ts';
import { Lane } from '../../../src/network/meter/lane.ts';
import type { ByteRate } from '../../../src/network/meter/token-bucket.ts';
import { TokenPool } from '../../../src/network/meter/token-pool.ts';
import { Turns } from '../../../src/network/meter/turns.ts';
import { ACCEPT, DROP } from '../../../src/network/queue/netlink.ts';

const STREAM = { is_stream: true, flow: 1 };
const DATAGRAM = { is_stream: false, flow: 2 };
const BURST = 65_536;

/** A team whose authority grants what is asked, at a rate and without a burst. */
class Team {
  readonly turns = new Turns<Lane>();
  readonly pool: TokenPool;
  now_us = 1_000_000;
  /** When the authority has gained what it granted so far. */
  #granted_until_us = this.now_us;

  constructor(bytes_per_second: number | null) {
    this.pool = new TokenPool(
      bytes_per_second === null ? null : { bytes_per_second, version: 1 },
      {
        reserve: (bytes) => {
          const rate = bytes_per_second as number;
          this.#granted_until_us =
            Math.max(this.#granted_until_us, this.now_us) + Math.ceil((bytes * 1e6) / rate);
          const until_us = this.#granted_until_us;
          this.#answer = () =>
            this.pool.answer(
              { outcome: 'reserved', delay_ms: (until_us - this.now_us) / 1_000 },
              this.now_us,
            );
        },
        giveBack: () => {},
      },
      false,
    );
  }

  #answer: (() => void) | null = null;

  answer(): void {
    const answer = this.#answer;
    this.#answer = null;
    answer?.();
  }
}

/** A lane and what it decided. */
function laneOf(team: Team, limit: ByteRate | null) {
  const passed: number[] = [];
  const dropped: number[] = [];
  const counts = new SharedCounts().egress;
  const lane = new Lane({
    limit,
    team,
    counts,
    onVerdict: (id, verdict) => (verdict === ACCEPT ? passed : dropped).push(id),
    now_us: team.now_us,
  });
  return { lane, passed, dropped, counts };
}

const free = () => new Team(null);
const slow = { bytes_per_second: 10_000, burst_bytes: BURST };

describe('a lane', () => {
  it('passes everything at once where nothing limits it', () => {
    const { lane, passed, counts } = laneOf(free(), null);
    lane.offer({ id: 1, length: 65_000 }, STREAM, 5);
    lane.offer({ id: 2, length: 1_500 }, DATAGRAM, 5);
    expect([passed, lane.held]).toEqual([[1, 2], 0]);
    expect(counts.read()).toMatchObject({ passed_bytes: 66_500, passed_packets: 2, dropped_packets: 0 });
  });

  it('holds a stream until its tokens are there, and drops a datagram', () => {
    const team = free();
    const { lane, passed, dropped, counts } = laneOf(team, slow);
    lane.offer({ id: 1, length: 60_000 }, STREAM, team.now_us);
    lane.offer({ id: 2, length: 10_000 }, STREAM, team.now_us);
    lane.offer({ id: 3, length: 9_000 }, DATAGRAM, team.now_us);
    expect([passed, dropped, lane.held]).toEqual([[1], [3], 1]);
    lane.release(team.now_us);
    const wake_us = lane.wake_us;
    expect(wake_us).toBeGreaterThan(team.now_us + 446_000);
    expect(wake_us).toBeLessThanOrEqual(team.now_us + 446_401);
    expect(lane.release(wake_us)).toBe(true);
    expect(passed).toEqual([1, 2]);
    expect(counts.read()).toMatchObject({ passed_bytes: 70_000, dropped_bytes: 9_000, dropped_packets: 1 });
    expect(counts.read().waited_us).toBe(wake_us - team.now_us);
  });

  it('lets a small datagram by where a large segment waits, but not a flood of them', () => {
    const team = free();
    const { lane, passed, dropped } = laneOf(team, { bytes_per_second: 1_000_000, burst_bytes: BURST });
    lane.offer({ id: 0, length: 30_000 }, STREAM, team.now_us);
    lane.offer({ id: 1, length: 65_000 }, STREAM, team.now_us);
    lane.offer({ id: 2, length: 60 }, DATAGRAM, team.now_us);
    expect(passed).toEqual([0, 2]);
    for (let id = 3; id < 20_000; id++) {
      team.now_us += 100;
      lane.offer({ id, length: 1_000 }, DATAGRAM, team.now_us);
      lane.release(team.now_us);
      if (id % 100 === 0) lane.offer({ id: 100_000 + id, length: 65_000 }, STREAM, team.now_us);
    }
    const streams = passed.filter((id) => id === 1 || id >= 100_000).length * 65_000;
    const datagrams = passed.filter((id) => id > 2 && id < 100_000).length * 1_000;
    expect(dropped.length).toBeGreaterThan(10_000);
    expect(streams).toBeGreaterThan(0.9 * datagrams);
  });

  it('waits with a datagram for the answer of the authority, and for nothing else', () => {
    const team = new Team(1_000_000);
    const { lane, passed, dropped } = laneOf(team, null);
    lane.offer({ id: 1, length: 1_000 }, DATAGRAM, team.now_us);
    expect([passed, dropped, lane.held]).toEqual([[], [], 1]);
    team.answer();
    lane.release(team.now_us);
    // The authority has nothing yet.
    expect([passed, dropped]).toEqual([[], [1]]);
    team.now_us += 1_000_000;
    lane.offer({ id: 2, length: 1_000 }, DATAGRAM, team.now_us);
    expect(passed).toEqual([2]);
  });

  it('takes no token of its own while it waits for its team, nor of its team while it waits for its own', () => {
    const team = new Team(1_000_000);
    const { lane, passed } = laneOf(team, { bytes_per_second: 1_000_000, burst_bytes: BURST });
    lane.offer({ id: 1, length: 60_000 }, STREAM, team.now_us);
    lane.release(team.now_us);
    team.answer();
    expect(passed).toEqual([]);
    const tokens = new SharedCounts();
    expect(tokens.egress.read().passed_bytes).toBe(0);
    team.now_us += 100_000;
    lane.release(team.now_us);
    expect(passed).toEqual([1]);
    expect(team.pool.tokens).toBe(65_536 - 60_000);
  });

  it('passes what it holds when nothing limits it any longer', () => {
    const team = free();
    const { lane, passed } = laneOf(team, slow);
    for (let id = 0; id < 5; id++) lane.offer({ id, length: 60_000 }, STREAM, team.now_us);
    lane.open(team.now_us);
    expect([passed, lane.held]).toEqual([[0, 1, 2, 3, 4], 0]);
  });

  it('holds what waits already to another limit', () => {
    const team = free();
    const { lane, passed } = laneOf(team, slow);
    for (let id = 0; id < 3; id++) lane.offer({ id, length: 60_000 }, STREAM, team.now_us);
    lane.change({ bytes_per_second: 100_000_000, burst_bytes: 0 }, team.now_us);
    team.now_us += 2_000;
    lane.release(team.now_us);
    expect(passed).toEqual([0, 1, 2]);
  });
});

describe('the lanes of a team', () => {
  it('share its tokens by bytes, whatever the size of their packets', () => {
    const team = new Team(10_000_000);
    const sizes = [65_000, 9_000, 1_500];
    const lanes = sizes.map(() => laneOf(team, null));
    for (let step = 0; step < 4_000; step++) {
      for (const [i, { lane }] of lanes.entries()) {
        while (lane.held < 64) lane.offer({ id: 0, length: sizes[i] as number }, STREAM, team.now_us);
      }
      team.pool.tick(team.now_us);
      while (lanes.map(({ lane }) => lane.release(team.now_us)).includes(true)) team.answer();
      team.answer();
      team.now_us += 500;
    }
    const bytes = lanes.map(({ counts }) => counts.read().passed_bytes);
    const total = bytes.reduce((sum, each) => sum + each, 0);
    expect(total).toBeLessThanOrEqual(20_000_000);
    expect(total).toBeGreaterThan(19_500_000);
    for (const each of bytes) expect(each / total).toBeGreaterThan(0.3);
  });

  it('decide on every packet once, keep a connection in order, and never pass more than was paid for', () => {
    const packets = fc.array(
      fc.record({
        lane: fc.nat(2),
        length: fc.integer({ min: 20, max: 65_535 }),
        flow: fc.nat(3),
        is_stream: fc.boolean(),
        after_us: fc.nat(20_000),
      }),
      { maxLength: 150 },
    );
    const rate = fc.integer({ min: 100_000, max: 50_000_000 });
    fc.assert(
      fc.property(rate, rate, packets, (team_rate, own_rate, all) => {
        const team = new Team(team_rate);
        const began_us = team.now_us;
        const own = { bytes_per_second: own_rate, burst_bytes: 100_000 };
        const lanes = [0, 1, 2].map(() => laneOf(team, own));
        const check = () => {
          const passed = lanes.map(({ counts }) => counts.read().passed_bytes);
          const us = team.now_us - began_us;
          for (const each of passed) expect(each).toBeLessThanOrEqual(100_000 + (own_rate * us) / 1e6);
          expect(passed.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual((team_rate * us) / 1e6);
        };
        const release = () => {
          team.pool.tick(team.now_us);
          while (lanes.map(({ lane }) => lane.release(team.now_us)).includes(true)) team.answer();
          team.answer();
        };
        for (const [id, { lane, length, flow, is_stream, after_us }] of all.entries()) {
          team.now_us += after_us;
          lanes[lane]?.lane.offer({ id, length }, { is_stream, flow }, team.now_us);
          release();
          check();
        }
        for (let i = 0; i < 20_000 && lanes.some(({ lane }) => lane.held > 0); i++) {
          team.now_us += 10_000;
          release();
        }
        check();
        for (const [index, { passed, dropped }] of lanes.entries()) {
          const offered = all.flatMap(({ lane }, id) => (lane === index ? [id] : []));
          expect([...passed, ...dropped].toSorted((a, b) => a - b)).toEqual(offered);
          expect(dropped.filter((id) => all[id]?.is_stream)).toEqual([]);
          for (let flow = 0; flow < 4; flow++) {
            const stream = passed.filter((id) => all[id]?.is_stream && all[id]?.flow === flow);
            expect(stream).toEqual(stream.toSorted((a, b) => a - b));
          }
        }
      }),
      { numRuns: 60 },
    );
  });
});

it('drops are told to the kernel as such', () => {
  expect([ACCEPT, DROP]).toEqual([1, 0]);
});
