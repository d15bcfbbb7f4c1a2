import { PACKET_TURN_BYTES } from '../../contract/defaults.ts';
import { BURST_MIN_BYTES } from '../../contract/network.ts';

/** The number of bytes that one of several waiting parties takes before the next one's turn. */
const TURN_BYTES = BURST_MIN_BYTES;
/** How many bytes datagrams may get ahead of waiting streams. */
const AHEAD_MAX_BYTES = BURST_MIN_BYTES;

/** What a packet takes of a turn, in bytes: its length, but no less than its verdict is worth. No tokens are counted so. */
function turnCost(bytes: number): number {
  return Math.max(bytes, PACKET_TURN_BYTES);
}

/**
 * Decides who may take tokens that several parties are waiting for. Streams take turns. Datagrams, which fit where a
 * large segment has to wait, get no more than the streams do; otherwise a flood of them would starve every stream.
 */
export class Turns<Party> {
  /** What each party may still take in its turn, in the order of the turns. */
  readonly #waiting = new Map<Party, number>();
  #ahead_bytes = 0;

  /** Whether it is nobody else's turn. */
  isTurnOf(party: Party): boolean {
    for (const first of this.#waiting.keys()) return first === party;
    return true;
  }

  /** Joins the queue; has no effect if already in it. */
  wait(party: Party): void {
    if (!this.#waiting.has(party)) this.#waiting.set(party, TURN_BYTES);
  }

  /** Leaves the queue: it has nothing left, or is waiting for something else. */
  leave(party: Party): void {
    this.#waiting.delete(party);
    if (this.#waiting.size === 0) this.#ahead_bytes = 0;
  }

  /** A party whose turn it was has taken tokens. Returns whether its turn is over because others wait. */
  taken(party: Party, bytes: number): boolean {
    const cost = turnCost(bytes);
    this.#ahead_bytes = Math.max(0, this.#ahead_bytes - cost);
    const credit = this.#waiting.get(party);
    if (credit === undefined || this.#waiting.size === 1) return false;
    if (credit > cost) {
      this.#waiting.set(party, credit - cost);
      return false;
    }
    this.#waiting.delete(party);
    // What it took beyond its share is deducted from its next turn.
    this.#waiting.set(party, credit - cost + TURN_BYTES);
    return true;
  }

  /** Whether a datagram may overtake the waiting streams. */
  admitsDatagram(bytes: number): boolean {
    return this.#waiting.size === 0 || this.#ahead_bytes + turnCost(bytes) <= AHEAD_MAX_BYTES;
  }

  /** A datagram has taken tokens. */
  takenByDatagram(bytes: number): void {
    if (this.#waiting.size > 0) this.#ahead_bytes += turnCost(bytes);
  }
}
