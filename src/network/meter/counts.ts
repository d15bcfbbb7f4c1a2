import { DIRECTIONS } from '../directions.ts';
import { BUCKET_SLOTS } from './token-bucket.ts';

const PASSED_BYTES = 0;
const PASSED_PACKETS = 1;
const DROPPED_BYTES = 2;
const DROPPED_PACKETS = 3;
const WAITED_US = 4;
const UNADMITTED_BYTES = 5;
const BUCKET = 6;
const LANE_SLOTS = BUCKET + BUCKET_SLOTS;
const FD = DIRECTIONS.length * LANE_SLOTS;
const SLOTS = FD + 1;

/** What the verdicts of one direction came to since the sandbox was attached. */
export interface LaneCount {
  /** IP packet lengths. */
  passed_bytes: number;
  passed_packets: number;
  /** Datagrams without tokens. */
  dropped_bytes: number;
  dropped_packets: number;
  /** How long at least one packet waited, in microseconds. */
  waited_us: number;
  /** What passed without tokens, while the authority could not be reached and quotas fail open. */
  unadmitted_bytes: number;
}

/** One direction's counts, written by the meter's thread. */
export class LaneCounts {
  readonly #slots: Float64Array;
  /** Where the sandbox's bucket keeps its tokens, so that a new thread goes on from there. */
  readonly bucket: Float64Array;

  constructor(slots: Float64Array) {
    this.#slots = slots;
    this.bucket = slots.subarray(BUCKET, BUCKET + BUCKET_SLOTS);
  }

  /** Counts a packet that passed. */
  passed(bytes: number, unadmitted_bytes: number): void {
    this.#add(PASSED_BYTES, bytes);
    this.#add(PASSED_PACKETS, 1);
    if (unadmitted_bytes > 0) this.#add(UNADMITTED_BYTES, unadmitted_bytes);
  }

  /** Counts a datagram that was dropped. */
  dropped(bytes: number): void {
    this.#add(DROPPED_BYTES, bytes);
    this.#add(DROPPED_PACKETS, 1);
  }

  /** Counts time in which packets waited. */
  waited(us: number): void {
    this.#add(WAITED_US, us);
  }

  /** The counts now. */
  read(): LaneCount {
    const at = (slot: number) => this.#slots[slot] as number;
    return {
      passed_bytes: at(PASSED_BYTES),
      passed_packets: at(PASSED_PACKETS),
      dropped_bytes: at(DROPPED_BYTES),
      dropped_packets: at(DROPPED_PACKETS),
      waited_us: at(WAITED_US),
      unadmitted_bytes: at(UNADMITTED_BYTES),
    };
  }

  #add(slot: number, value: number): void {
    this.#slots[slot] = (this.#slots[slot] as number) + value;
  }
}

/**
 * What the threads share about one sandbox: integers as doubles, each written by the meter's thread alone. They
 * outlive that thread.
 */
export class SharedCounts {
  readonly memory: SharedArrayBuffer;
  readonly egress: LaneCounts;
  readonly ingress: LaneCounts;
  readonly #slots: Float64Array;

  constructor(memory = new SharedArrayBuffer(SLOTS * Float64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#slots = new Float64Array(memory);
    this.egress = new LaneCounts(this.#slots.subarray(0, LANE_SLOTS));
    this.ingress = new LaneCounts(this.#slots.subarray(LANE_SLOTS, 2 * LANE_SLOTS));
  }

  /** The open queue's file descriptor, which outlives a thread that dies; null if it is closed. */
  get fd(): number | null {
    return this.#slots[FD] || null;
  }

  set fd(fd: number | null) {
    this.#slots[FD] = fd ?? 0;
  }
}
