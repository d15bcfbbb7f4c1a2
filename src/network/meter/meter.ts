import type { Clock } from '../../base/clock.ts';
import type { Reservation } from '../authority.ts';
import { DIRECTIONS, type Direction, type PerDirection, QUEUES, UDP_QUEUES } from '../directions.ts';
import { Poll } from '../queue/libc.ts';
import type { QueuedPacket } from '../queue/netlink.ts';
import { readPacketKind } from '../queue/packet.ts';
import { PacketQueue, SANDBOX_QUEUES } from '../queue/packet-queue.ts';
import { SharedCounts } from './counts.ts';
import { Lane, type TeamTokens } from './lane.ts';
import { ReadTurns } from './read-turns.ts';
import type { ByteRate } from './token-bucket.ts';
import { type PoolRequests, type TeamRate, TokenPool } from './token-pool.ts';
import { Turns } from './turns.ts';

/** The longest wait of the meter before it makes another step, which shows that it is alive. */
const WAIT_MAX_MS = 1_000;
/** Packets read at a time from a queue that is emptied. */
const EMPTIED_PACKETS = 128;
/** More than the ids of a queue's packets, which have 32 bits. */
const IDS = 2 ** 32;

/** A metered sandbox. */
export interface MeteredSandbox {
  sandbox_id: string;
  team_id: string;
  /** The path of its network namespace. */
  namespace_path: string;
  /** Its own limits; null if it has none. */
  limits: PerDirection<ByteRate | null>;
  /** Its team's limits; null if it has none. */
  team_rates: PerDirection<TeamRate | null>;
  /** The memory of its `SharedCounts`. */
  memory: SharedArrayBuffer;
}

/** The dependencies of a `Meter`. */
export interface MeterParts {
  clock: Clock;
  /** Reaches the authority for a team's pool. */
  requestsOf: (team_id: string, direction: Direction) => PoolRequests;
  /** `--quota-fail-open`. */
  is_fail_open: boolean;
}

interface Metered {
  team_id: string;
  queue: PacketQueue;
  counts: SharedCounts;
  lanes: PerDirection<Lane>;
}

interface Team extends TeamTokens {
  lanes: Set<Lane>;
}

/**
 * Gives the verdict on every packet of this node's metered sandboxes, in one thread: `step` blocks until there is work
 * and does it. Source: contract section 7, "Network".
 */
export class Meter {
  readonly #parts: MeterParts;
  readonly #poll = new Poll();
  readonly #wake_fd: number;
  readonly #sandboxes = new Map<string, Metered>();
  readonly #by_fd = new Map<number, Metered>();
  readonly #teams = new Map<string, Team>();
  /** Pools with scheduled work. */
  readonly #active = new Set<TokenPool>();
  readonly #holding = new Set<Lane>();
  readonly #unsent = new Set<PacketQueue>();
  readonly #read_turns = new ReadTurns<Metered>();
  /** Tokens or limits have changed, so waiting packets must be checked again. */
  #is_changed = false;

  /** `wake_fd` ends the wait in `step` when it becomes readable. */
  constructor(parts: MeterParts, wake_fd: number) {
    this.#parts = parts;
    this.#wake_fd = wake_fd;
    this.#watch();
  }

  /** Opens a sandbox's queues. Throws SystemError. */
  attach(sandbox: MeteredSandbox): void {
    const { sandbox_id, team_id, limits, namespace_path } = sandbox;
    const counts = new SharedCounts(sandbox.memory);
    const queue = PacketQueue.open(namespace_path, SANDBOX_QUEUES);
    counts.fd = queue.fd;
    const now_us = this.#nowUs();
    const lane = (direction: Direction): Lane => {
      const team = this.#teamOf(team_id, direction, sandbox.team_rates[direction]);
      const onVerdict = (id: number, verdict: number) => {
        queue.decide(Math.floor(id / IDS), id % IDS, verdict);
        this.#unsent.add(queue);
      };
      const made = new Lane({ limit: limits[direction], team, counts: counts[direction], onVerdict, now_us });
      team.lanes.add(made);
      return made;
    };
    const metered = { team_id, queue, counts, lanes: { egress: lane('egress'), ingress: lane('ingress') } };
    this.#sandboxes.set(sandbox_id, metered);
    this.#by_fd.set(queue.fd, metered);
    this.#watch();
  }

  /**
   * Closes a sandbox's queues. Waiting packets pass with `is_free`, because no limit applies any more, and are dropped
   * otherwise.
   */
  detach(sandbox_id: string, is_free: boolean): void {
    const metered = this.#sandboxes.get(sandbox_id);
    if (!metered) return;
    const { queue, counts, lanes, team_id } = metered;
    this.#sandboxes.delete(sandbox_id);
    this.#by_fd.delete(queue.fd);
    // No rule sends more of them.
    while (is_free && this.#read(metered, EMPTIED_PACKETS, this.#nowUs()));
    for (const direction of DIRECTIONS) {
      const lane = lanes[direction];
      if (is_free) lane.open(this.#nowUs());
      lane.close();
      this.#holding.delete(lane);
      this.#leaveTeam(team_id, direction, lane);
    }
    queue.flush();
    this.#unsent.delete(queue);
    counts.fd = null;
    queue.close();
    this.#watch();
  }

  /** Changes a sandbox's own limits, also for open connections. */
  limit(sandbox_id: string, limits: PerDirection<ByteRate | null>): void {
    const lanes = this.#sandboxes.get(sandbox_id)?.lanes;
    this.#is_changed = true;
    for (const direction of DIRECTIONS) lanes?.[direction].change(limits[direction], this.#nowUs());
  }

  /** Changes a team's limit, also for open connections. */
  limitTeam(team_id: string, direction: Direction, rate: TeamRate | null): void {
    this.#is_changed = true;
    this.#teams.get(`${direction} ${team_id}`)?.pool.change(rate);
  }

  /** Passes the authority's answer to a pool. */
  answer(team_id: string, direction: Direction, reservation: Reservation): void {
    this.#is_changed = true;
    const pool = this.#teams.get(`${direction} ${team_id}`)?.pool;
    pool?.answer(reservation, this.#nowUs());
  }

  /** Waits for work, does it, and returns whether it was woken. Throws SystemError. */
  step(): boolean {
    const ready = this.#poll.wait(this.#is_changed ? 0 : this.#patienceMs());
    this.#is_changed = false;
    const now_us = this.#nowUs();
    const waiting: Metered[] = [];
    for (const fd of ready) {
      const metered = this.#by_fd.get(fd);
      if (metered) waiting.push(metered);
    }
    for (const [metered, packets] of this.#read_turns.next(waiting)) {
      this.#read(metered, packets, now_us);
      // Its packets go on before those of others are read.
      if (waiting.length > 1) metered.queue.flush();
    }
    for (const pool of this.#active) {
      pool.tick(now_us);
      if (pool.is_at_rest) this.#active.delete(pool);
    }
    this.#release(now_us);
    for (const queue of this.#unsent) queue.flush();
    this.#unsent.clear();
    return waiting.length < ready.length;
  }

  /** Closes every queue. */
  close(): void {
    for (const sandbox_id of this.#sandboxes.keys()) this.detach(sandbox_id, false);
  }

  /** Reads at most so many packets. Returns whether there may be more. */
  #read({ queue, lanes }: Metered, packets: number, now_us: number): boolean {
    return queue.read(packets, (packet: QueuedPacket, bytes) => {
      const is_egress = packet.queue === QUEUES.egress || packet.queue === UDP_QUEUES.egress;
      const lane = is_egress ? lanes.egress : lanes.ingress;
      // Each queue numbers its own packets.
      packet.id += packet.queue * IDS;
      lane.offer(packet, readPacketKind(bytes, packet.start, packet.end), now_us);
      if (lane.held > 0) this.#holding.add(lane);
    });
  }

  /** Lets the lanes take turns until none can pass another packet. */
  #release(now_us: number): void {
    for (let is_moving = true; is_moving; ) {
      is_moving = false;
      for (const lane of this.#holding) {
        if (lane.release(now_us)) is_moving = true;
        if (lane.held === 0) this.#holding.delete(lane);
      }
    }
  }

  #patienceMs(): number {
    let wake_us = Number.POSITIVE_INFINITY;
    for (const lane of this.#holding) wake_us = Math.min(wake_us, lane.wake_us);
    for (const pool of this.#active) wake_us = Math.min(wake_us, pool.wake_us);
    const wait_ms = Math.ceil((wake_us - this.#nowUs()) / 1_000);
    return Math.min(WAIT_MAX_MS, Math.max(0, wait_ms));
  }

  #teamOf(team_id: string, direction: Direction, rate: TeamRate | null): Team {
    const key = `${direction} ${team_id}`;
    const known = this.#teams.get(key);
    if (known) {
      known.pool.change(rate);
      return known;
    }
    const { requestsOf, is_fail_open } = this.#parts;
    const { reserve, giveBack } = requestsOf(team_id, direction);
    const pool: TokenPool = new TokenPool(
      rate,
      {
        reserve: (bytes) => {
          this.#active.add(pool);
          reserve(bytes);
        },
        giveBack,
      },
      is_fail_open,
    );
    const team = { pool, turns: new Turns<Lane>(), lanes: new Set<Lane>() };
    this.#teams.set(key, team);
    return team;
  }

  #leaveTeam(team_id: string, direction: Direction, lane: Lane): void {
    const key = `${direction} ${team_id}`;
    const team = this.#teams.get(key);
    team?.lanes.delete(lane);
    if (!team || team.lanes.size > 0) return;
    team.pool.giveBack();
    this.#active.delete(team.pool);
    this.#teams.delete(key);
  }

  #watch(): void {
    this.#poll.watch([this.#wake_fd, ...this.#by_fd.keys()]);
  }

  #nowUs(): number {
    return Math.floor(this.#parts.clock.monotonicMs() * 1_000);
  }
}
