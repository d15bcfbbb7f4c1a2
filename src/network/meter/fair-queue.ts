/**
 * The quantum: bytes that a flow gains in each round. It is small to keep a round over many flows short; a packet of
 * any size may be sent once its flow's deficit is paid off.
 */
const QUANTUM_BYTES = 2_048;

/** A packet held by the kernel. */
export interface HeldPacket {
  id: number;
  length: number;
}

interface Flow {
  key: number;
  packets: HeldPacket[];
  /** Bytes that it may still send in this round; negative after a packet larger than its quantum. */
  credit: number;
}

/**
 * Waiting packets, scheduled fairly by flow with deficit round robin; a flow that had nothing waiting goes first. The
 * order within a flow is kept.
 */
export class FairQueue {
  readonly #flows = new Map<number, Flow>();
  #fresh: Flow[] = [];
  #others: Flow[] = [];
  #size = 0;

  /** The number of waiting packets. */
  get size(): number {
    return this.#size;
  }

  /** Adds a packet at the end of its flow. */
  push(flow: number, packet: HeldPacket): void {
    this.#size += 1;
    const known = this.#flows.get(flow);
    if (known) {
      known.packets.push(packet);
      return;
    }
    const added = { key: flow, packets: [packet], credit: QUANTUM_BYTES };
    this.#flows.set(flow, added);
    this.#fresh.push(added);
  }

  /** The next packet; null if none is waiting. */
  head(): HeldPacket | null {
    return this.#next()?.packets[0] ?? null;
  }

  /** Removes the next packet. */
  shift(): void {
    const flow = this.#next();
    const packet = flow?.packets.shift();
    if (!flow || !packet) return;
    flow.credit -= packet.length;
    this.#size -= 1;
    if (this.#size === 0) this.#clear();
  }

  #next(): Flow | null {
    for (;;) {
      const list = this.#fresh.length > 0 ? this.#fresh : this.#others;
      const flow = list[0];
      if (!flow) return null;
      if (flow.credit <= 0) {
        flow.credit += QUANTUM_BYTES;
        this.#others.push(list.shift() as Flow);
      } else if (flow.packets.length > 0) {
        return flow;
      } else if (list === this.#fresh) {
        // An emptied flow keeps its place for one round; otherwise it would count as new again and jump the queue.
        this.#others.push(list.shift() as Flow);
      } else {
        this.#flows.delete(flow.key);
        list.shift();
      }
    }
  }

  #clear(): void {
    this.#flows.clear();
    this.#fresh = [];
    this.#others = [];
  }
}
