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

/** The totals of one direction since the sandbox was attached. */
export interface LaneCount {
  /** Bytes, as IP packet lengths. */
  passed_bytes: number;
  passed_packets: number;
  /** Datagrams dropped for lack of tokens. */
  dropped_bytes: number;
  dropped_packets: number;
  /** Time during which at least one packet was waiting, in microseconds. */
  waited_us: number;
  /** Bytes that passed without tokens because the authority could not be reached and quotas fail open. */
  unadmitted_bytes: number;
}

/** One direction's counts, written by the meter's thread. */
export class LaneCounts {
  readonly #slots: Float64Array;
  /** The state of the sandbox's bucket, with which a restarted thread continues. */
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

  /** Adds time during which packets were waiting. */
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
 * The counters of one sandbox in shared memory: integers stored as doubles, written only by the meter thread. They
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
