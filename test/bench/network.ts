import { createLog } from '../../src/base/log.ts';
import { QuotaByteAuthority } from '../../src/manager/quotas/byte-authority.ts';
import { RedisAuthority } from '../../src/manager/quotas/redis-authority.ts';
import type { Direction } from '../../src/network/directions.ts';
import { networkProblem } from '../../src/network/problem.ts';
import { BareLink } from '../support/network/bare-link.ts';
import { bandwidth, TestNode, type TestSandbox, teamLimits } from '../support/network/test-node.ts';
import { OUTSIDE } from '../support/network/topology.ts';
import { HAS_REDIS, RedisServer } from '../support/redis.ts';
import type { Bench, Benchmark } from './support/bench.ts';
import { median, nowMs, sleepMs } from './support/numbers.ts';
import { sized } from './support/size.ts';
import { comparison, figure, type Row, skipped } from './support/table.ts';

const MB = 1_000_000;
const RATE = 12.5 * MB;
const BURST = 1.25 * MB;
/** So high that nothing waits. */
const AMPLE = 2 ** 44;
const TURNS = sized(3, 1);
const TURN_MS = sized(2_000, 300);
const LIMIT_MS = sized(30_000, 1_000);
const NODES_MS = sized(10_000, 1_000);
const STREAMS = 64;
const NEWCOMERS = sized(30, 2);
const PINGS = sized(500, 5);
const IDLE_SANDBOXES = sized(100, 3);
const IDLE_MS = sized(10_000, 500);

interface Moved {
  moved: number;
  seconds: number;
  errors: number;
}

/** A node for the benchmark; reports that it is skipped, and returns null, where there can be none. */
async function nodeFor(bench: Bench, name: string): Promise<TestNode | null> {
  const problem = await networkProblem();
  if (problem === null) return await TestNode.start((remove) => bench.onEnd(remove));
  bench.report(skipped(name, problem));
  return null;
}

/** A figure of what is ours alone, against its bar. */
function own(name: string, ours: string, wanted: string, is_ok: boolean, ratio = ''): Row {
  return { name, bare: '', ours, ratio, wanted, verdict: is_ok ? 'ok' : 'missed' };
}

/** Bytes that arrive in a second, and round trips, against a plain link in turn, without a limit that bites. */
export const networkUnlimited: Benchmark = {
  name: 'network-unlimited',
  async run(bench) {
    const node = await nodeFor(bench, 'metered network; bare: plain link');
    if (!node) return;
    const bare = new BareLink(node);
    bench.onEnd(() => bare.remove());
    const counted = await node.sandbox();
    const metered = await node.sandbox(bandwidth(AMPLE));
    const flood = async (namespace: string, way: string, streams: number) => {
      const traffic = node.topology.traffic(namespace, 'flood', OUTSIDE.ipv4, way, streams, TURN_MS);
      await traffic.next();
      const { moved, seconds } = await traffic.next<Moved>();
      return moved / seconds / MB;
    };
    const ways: [string, TestSandbox, string, number, number][] = [
      ['metered, 1 stream out', metered, 'out', 1, 0.65],
      ['metered, 64 streams out', metered, 'out', STREAMS, 0.65],
      ['metered, 1 stream in', metered, 'in', 1, 0.65],
      ['metered, 64 streams in', metered, 'in', STREAMS, 0.65],
      ['counted alone, 1 stream out', counted, 'out', 1, 0.95],
      ['counted alone, 64 streams out', counted, 'out', STREAMS, 0.95],
    ];
    for (const [name, sandbox, way, streams, wanted] of ways) {
      const turns: { bare: number[]; ours: number[] } = { bare: [], ours: [] };
      for (let turn = 0; turn < TURNS; turn++) {
        turns.bare.push(await flood(bare.namespace, way, streams));
        turns.ours.push(await flood(sandbox.namespace, way, streams));
      }
      const [plain, ours] = [Math.max(...turns.bare), Math.max(...turns.ours)];
      bench.report(comparison({ name, bare: plain, ours, unit: 'MB/s', wanted, wants: 'at least' }));
    }
    const ping = async (namespace: string) => {
      const traffic = node.topology.traffic(namespace, 'pings', OUTSIDE.ipv4, PINGS);
      return median((await traffic.next<{ took_ms: number[] }>()).took_ms);
    };
    const [plain, ours] = [await ping(bare.namespace), await ping(metered.namespace)];
    const added = `${figure(ours - plain)} ms added`;
    const row = own(
      'metered, round trip p50',
      `${figure(ours)} ms`,
      '≤ 0.3 ms added',
      ours - plain <= 0.3,
      added,
    );
    bench.report({ ...row, bare: `${figure(plain)} ms` });
  },
};

/** What a direction's limit lets pass over 30 s, by the kernel's count, against burst and rate over time. */
export const networkLimit: Benchmark = {
  name: 'network-limit',
  async run(bench) {
    const node = await nodeFor(bench, 'network limit');
    if (!node) return;
    for (const family of ['ipv4', 'ipv6'] as const) {
      for (const direction of ['egress', 'ingress'] as const) {
        for (const streams of [1, STREAMS]) {
          const sandbox = await node.sandbox(bandwidth(RATE, BURST));
          const { share, errors } = await limited(sandbox, family, direction, streams);
          const name = `limit of ${RATE / MB} MB/s over ${LIMIT_MS / 1_000} s, ${family}, ${direction}, ${streams} streams`;
          const is_ok = share >= 0.98 && share <= 1 && errors === 0;
          const row = own(name, share.toFixed(4), '0.98 – 1.000 of burst + rate × t', is_ok);
          bench.report(share > 1 ? { ...row, verdict: 'broken' } : row);
        }
      }
    }
  },
};

async function limited(
  sandbox: TestSandbox,
  family: keyof typeof OUTSIDE,
  direction: Direction,
  streams: number,
) {
  const before = (await sandbox.usage())[direction].passed_bytes;
  const began_ms = nowMs();
  const way = direction === 'egress' ? 'out' : 'in';
  const flood = sandbox.traffic('flood', OUTSIDE[family], way, streams, LIMIT_MS + 2_000);
  await flood.next();
  await sleepMs(LIMIT_MS);
  const passed = (await sandbox.usage())[direction].passed_bytes - before;
  const seconds = (nowMs() - began_ms) / 1_000;
  const { errors } = await flood.next<Moved>();
  return { share: passed / (BURST + RATE * seconds), errors };
}

/** Datagrams at 1.6 times the limit: those that passed, and the sum. */
export const networkDatagrams: Benchmark = {
  name: 'network-datagrams',
  async run(bench) {
    const node = await nodeFor(bench, 'datagrams over the limit');
    if (!node) return;
    const count = 100_000;
    const length = 1_200 + 28;
    const sandbox = await node.sandbox(bandwidth(RATE, BURST));
    const began_ms = nowMs();
    const sender = sandbox.traffic('datagrams', OUTSIDE.ipv4, count, 1_200, 25);
    await sender.next();
    const { passed_bytes, dropped_packets } = (await sandbox.usage()).egress;
    const seconds = (nowMs() - began_ms) / 1_000;
    // A few packets of the kernel's own, which are shorter than one datagram together.
    const passed = Math.floor(passed_bytes / length);
    const sum = `${passed} + ${dropped_packets} of ${count}`;
    const is_exact = passed + dropped_packets === count;
    const row = own('datagrams over the limit: passed + dropped', sum, 'what was sent', is_exact);
    bench.report(is_exact ? row : { ...row, verdict: 'broken' });
    const allowed = BURST + RATE * seconds;
    const offered = count * length;
    const share = passed_bytes / Math.min(allowed, offered);
    bench.report(
      own(
        'datagrams over the limit: passed',
        share.toFixed(4),
        '0.95 – 1.000 of burst + rate × t',
        share >= 0.95 && share <= 1,
      ),
    );
  },
};

/** A new connection and an answer of 1 KiB beside 64 streams at the limit. */
export const networkNewcomer: Benchmark = {
  name: 'network-newcomer',
  async run(bench) {
    const node = await nodeFor(bench, 'new connection beside streams');
    if (!node) return;
    const sandbox = await node.sandbox(bandwidth(RATE, BURST));
    const flood = sandbox.traffic('flood', OUTSIDE.ipv4, 'out', STREAMS, 20_000);
    await flood.next();
    const { took_ms } = await sandbox
      .traffic('requests', OUTSIDE.ipv4, NEWCOMERS)
      .next<{ took_ms: number[] }>();
    const p50 = median(took_ms);
    bench.report(
      own(
        `new connection and 1 KiB beside ${STREAMS} streams, p50`,
        `${figure(p50)} ms`,
        '≤ 50 ms',
        p50 <= 50,
      ),
    );
    flood.kill();
  },
};

/** Two nodes with a team's streams over one Redis. */
export const networkNodes: Benchmark = {
  name: 'network-nodes',
  async run(bench) {
    const name = 'two nodes on one Redis';
    const problem = (await networkProblem()) ?? (HAS_REDIS ? null : 'redis-server is missing');
    if (problem !== null) return bench.report(skipped(name, problem));
    const server = await RedisServer.start();
    bench.onEnd(() => server.stop());
    const options = { url: server.url, region_id: 'bench', log: createLog('silent') };
    const authority = await RedisAuthority.open(options);
    bench.onEnd(() => authority.close());
    let calls = 0;
    const lender = new QuotaByteAuthority({
      kind: 'redis',
      is_reachable: true,
      draw: (...args) => authority.draw(...args),
      reserve: (...args) => {
        calls += 1;
        return authority.reserve(...args);
      },
      close: () => authority.close(),
    });
    const began_ms = nowMs();
    const sandboxes: TestSandbox[] = [];
    for (let i = 0; i < 2; i++) {
      const node = await TestNode.start((remove) => bench.onEnd(remove), lender);
      sandboxes.push(await node.sandbox(bandwidth(0), teamLimits(RATE, BURST)));
    }
    const floods = sandboxes.map((sandbox) =>
      sandbox.traffic('flood', OUTSIDE.ipv4, 'out', 4, NODES_MS + 2_000),
    );
    await Promise.all(floods.map((flood) => flood.next()));
    const flooding_ms = nowMs();
    await sleepMs(NODES_MS);
    const passed = await Promise.all(
      sandboxes.map(async (sandbox) => (await sandbox.usage()).egress.passed_bytes),
    );
    const now_ms = nowMs();
    const sum = passed.reduce((total, each) => total + each, 0);
    const most = BURST + (RATE * (now_ms - began_ms)) / 1_000;
    const least = BURST + (RATE * (now_ms - flooding_ms)) / 1_000;
    const share = sum / least;
    const row = own(`${name}: sum`, share.toFixed(4), '≥ 0.98 of burst + rate × t', share >= 0.98);
    bench.report(sum > most ? { ...row, verdict: 'broken' } : row);
    const fair = Math.min(...passed) / sum;
    bench.report(own(`${name}: the lesser part`, fair.toFixed(3), '≥ 0.4 of the sum', fair >= 0.4));
    const wanted = (1.2 * sum) / ((RATE * 20) / 1_000);
    bench.report(own(`${name}: calls`, figure(calls), `≤ ${figure(wanted)}`, calls <= wanted));
  },
};

/** What 100 metered sandboxes without traffic cost. */
export const networkIdle: Benchmark = {
  name: 'network-idle',
  async run(bench) {
    const node = await nodeFor(bench, 'idle sandboxes');
    if (!node) return;
    const before = process.memoryUsage().rss;
    for (let i = 0; i < IDLE_SANDBOXES; i++) await node.sandbox(bandwidth(RATE));
    await sleepMs(2_000);
    const kib = (process.memoryUsage().rss - before) / 1_024 / IDLE_SANDBOXES;
    const usage = process.cpuUsage();
    await sleepMs(IDLE_MS);
    const { user, system } = process.cpuUsage(usage);
    const share = (user + system) / 1_000 / IDLE_MS;
    bench.report(
      own(`${IDLE_SANDBOXES} idle sandboxes: processor`, `${figure(share * 100)} %`, '< 1 %', share < 0.01),
    );
    bench.report(
      own(`${IDLE_SANDBOXES} idle sandboxes: memory of each`, `${figure(kib)} KiB`, '≤ 64 KiB', kib <= 64),
    );
  },
};
