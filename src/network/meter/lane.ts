import { ACCEPT, DROP } from '../queue/netlink.ts';
import type { PacketKind } from '../queue/packet.ts';
import type { LaneCounts } from './counts.ts';
import { FairQueue, type HeldPacket } from './fair-queue.ts';
import { type ByteRate, TokenBucket } from './token-bucket.ts';
import type { PoolAnswer, TokenPool } from './token-pool.ts';
import { Turns } from './turns.ts';

/** A team's tokens in one direction, and which of its sandboxes takes them next. */
export interface TeamTokens {
  pool: TokenPool;
  turns: Turns<Lane>;
}

/** The dependencies of a `Lane`. */
export interface LaneParts {
  /** The sandbox's own limit; null if it has none. */
  limit: ByteRate | null;
  team: TeamTokens;
  counts: LaneCounts;
  /** Gives the kernel its verdict on a packet: `ACCEPT` or `DROP`. */
  onVerdict: (id: number, verdict: number) => void;
  now_us: number;
}

/**
 * One sandbox's packets in one direction. A packet passes when the sandbox's bucket and its team's pool both have
 * tokens for its whole length; both are then debited. Packets of a stream wait, scheduled fairly by connection; a
 * datagram is dropped unless tokens are available. Source: contract section 7, "Network".
 */
export class Lane {
  readonly #team: TeamTokens;
  readonly #counts: LaneCounts;
  readonly #onVerdict: (id: number, verdict: number) => void;
  readonly #streams = new FairQueue();
  /** Shares tokens between the streams and the datagrams of this lane. */
  readonly #own = new Turns<Lane>();
  /** Datagrams that are waiting for nothing but the authority's answer. */
  #undecided: HeldPacket[] = [];
  #bucket: TokenBucket | null = null;
  #bucket_wake_us = Number.POSITIVE_INFINITY;
  #held_us: number | null = null;

  constructor({ limit, team, counts, onVerdict, now_us }: LaneParts) {
    this.#team = team;
    this.#counts = counts;
    this.#onVerdict = onVerdict;
    this.change(limit, now_us);
  }

  /** The number of held packets. */
  get held(): number {
    return this.#streams.size + this.#undecided.length;
  }

  /** When the sandbox's own bucket has tokens for the next packet; infinite if no packet is waiting for that bucket. */
  get wake_us(): number {
    return this.#bucket_wake_us;
  }

  /** Applies a new limit of the sandbox, also to packets that are already waiting. */
  change(limit: ByteRate | null, now_us: number): void {
    if (limit === null) this.#bucket = null;
    else if (this.#bucket) this.#bucket.change(limit, now_us);
    else this.#bucket = new TokenBucket(limit, now_us, this.#counts.bucket);
  }

  /** Accepts a packet held by the kernel. */
  offer(packet: HeldPacket, kind: PacketKind, now_us: number): void {
    if (!kind.is_stream) {
      this.#offerDatagram(packet, now_us);
    } else if (this.#streams.size === 0 && this.#mayTake(packet.length, now_us) === 'yes') {
      this.#pass(packet, now_us);
      this.#team.turns.taken(this, packet.length);
    } else {
      this.#streams.push(kind.flow, packet);
      this.#own.wait(this);
      this.#held_us ??= now_us;
    }
  }

  /** Passes the packets that have tokens by now. Returns whether any verdict was given. */
  release(now_us: number): boolean {
    const held = this.held;
    if (this.#undecided.length > 0) {
      const undecided = this.#undecided;
      this.#undecided = [];
      for (const packet of undecided) this.#offerDatagram(packet, now_us);
    }
    this.#releaseStreams(now_us);
    if (this.#held_us !== null) {
      this.#counts.waited(now_us - this.#held_us);
      this.#held_us = this.#streams.size === 0 ? null : now_us;
    }
    return this.held < held;
  }

  /** Passes every held packet, because no limit applies any more. */
  open(now_us: number): void {
    for (let packet = this.#streams.head(); packet; packet = this.#streams.head()) {
      this.#streams.shift();
      this.#accept(packet, 0);
    }
    for (const packet of this.#undecided) this.#accept(packet, 0);
    this.#undecided = [];
    this.release(now_us);
  }

  /** Leaves the team's pool, so that no other lane waits for its turn. */
  close(): void {
    this.#team.turns.leave(this);
  }

  #releaseStreams(now_us: number): void {
    const { turns } = this.#team;
    this.#bucket_wake_us = Number.POSITIVE_INFINITY;
    for (let packet = this.#streams.head(); packet; packet = this.#streams.head()) {
      if (this.#bucket && !this.#bucket.has(packet.length, now_us)) {
        this.#bucket_wake_us = now_us + this.#bucket.waitUs(packet.length, now_us);
        turns.leave(this);
        return;
      }
      if (!turns.isTurnOf(this) || this.#team.pool.has(packet.length, now_us) !== 'yes') {
        turns.wait(this);
        return;
      }
      this.#streams.shift();
      this.#pass(packet, now_us);
      this.#own.taken(this, packet.length);
      if (turns.taken(this, packet.length)) return;
    }
    this.#own.leave(this);
    turns.leave(this);
  }

  #offerDatagram(packet: HeldPacket, now_us: number): void {
    const { length } = packet;
    const is_fair = this.#own.admitsDatagram(length) && this.#team.turns.admitsDatagram(length);
    const answer = is_fair ? this.#hasTokens(length, now_us) : 'no';
    if (answer === 'yes') {
      this.#pass(packet, now_us);
      this.#own.takenByDatagram(length);
      this.#team.turns.takenByDatagram(length);
    } else if (answer === 'asking') {
      this.#undecided.push(packet);
    } else {
      this.#counts.dropped(length);
      this.#onVerdict(packet.id, DROP);
    }
  }

  /** Whether a stream's packet may pass now. */
  #mayTake(bytes: number, now_us: number): PoolAnswer {
    return this.#team.turns.isTurnOf(this) ? this.#hasTokens(bytes, now_us) : 'no';
  }

  #hasTokens(bytes: number, now_us: number): PoolAnswer {
    if (this.#bucket && !this.#bucket.has(bytes, now_us)) return 'no';
    return this.#team.pool.has(bytes, now_us);
  }

  #pass(packet: HeldPacket, now_us: number): void {
    this.#bucket?.take(packet.length);
    this.#accept(packet, this.#team.pool.take(packet.length, now_us));
  }

  #accept(packet: HeldPacket, unadmitted_bytes: number): void {
    this.#counts.passed(packet.length, unadmitted_bytes);
    this.#onVerdict(packet.id, ACCEPT);
  }
}
