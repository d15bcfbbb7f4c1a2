/**
 * How many bytes a flow gains in each round. Small, so that a round over many flows is short: a packet is sent as soon
 * as its flow owes nothing, however large it is.
 */
const QUANTUM_BYTES = 2_048;

/** A packet that the kernel holds. */
export interface HeldPacket {
  id: number;
  length: number;
}

interface Flow {
  key: number;
  packets: HeldPacket[];
  /** What it may still send in this round; below zero it owes. */
  credit: number;
}

/**
 * Packets that wait, fairly by flow: deficit round robin, with a first turn at once for a flow that had nothing
 * waiting. Within a flow the order stays.
 */
export class FairQueue {
  readonly #flows = new Map<number, Flow>();
  #fresh: Flow[] = [];
  #others: Flow[] = [];
  #size = 0;

  /** How many packets wait. */
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

  /** The packet whose turn it is; null if none waits. */
  head(): HeldPacket | null {
    return this.#next()?.packets[0] ?? null;
  }

  /** Takes out the packet whose turn it is. */
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
        // It keeps its place for a round: otherwise it could be fresh again at once.
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
