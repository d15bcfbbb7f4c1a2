import { type Clock, runTime, type Timer } from '../../base/clock.ts';
import { LOSSLESS_STALL_MS } from '../../contract/defaults.ts';
import type { OutputPosition } from '../../contract/processes.ts';
import { OUTPUT_STREAMS, type OutputStream } from '../../contract/words.ts';
import type { OutputLog } from './output-log.ts';

/** In steps, so that a machine that stood still meanwhile does not count as a follower that did. */
const CHECK_MS = 5_000;
const CHECKS_MAX = LOSSLESS_STALL_MS / CHECK_MS;
/** Who follows each stream over a connection of its own opens the second right after the first. */
const OTHER_STREAM_MS = 5_000;

type Logs = Readonly<Record<OutputStream, OutputLog>>;

/**
 * The followers of one process that must not miss a byte: while they are there, the process is read no faster than the
 * slowest of them takes. One that takes nothing for 60 s is dropped. Contract section 4, `lossless`.
 */
export class LosslessFollowers {
  readonly #clock: Clock;
  readonly #logs: Logs;
  readonly #expected = new Map<OutputStream, LosslessFollower>();

  constructor(clock: Clock, logs: Logs) {
    this.#clock = clock;
    this.#logs = logs;
  }

  /**
   * Holds the output from here on as if a follower were there, until the first has come, or for 60 s. A stream that the
   * first does not follow is held for 5 s more, until another has come for it.
   */
  expect(): void {
    for (const stream of OUTPUT_STREAMS) {
      this.#expected.set(stream, new LosslessFollower(this.#clock, this.#logs, [stream], 'end'));
    }
  }

  /** Adds a follower of these streams from the oldest kept byte on. It calls `onDropped` if it is dropped. */
  add(streams: readonly OutputStream[], onDropped: () => void): LosslessFollower {
    const follower = new LosslessFollower(this.#clock, this.#logs, streams, 'first', onDropped);
    for (const stream of streams) this.#expectNoLonger(stream);
    for (const stream of this.#expected.keys()) {
      runTime(this.#clock).after(OTHER_STREAM_MS, () => this.#expectNoLonger(stream));
    }
    return follower;
  }

  #expectNoLonger(stream: OutputStream): void {
    this.#expected.get(stream)?.leave();
    this.#expected.delete(stream);
  }
}

/** One follower that holds the output. */
export class LosslessFollower {
  readonly #clock: Clock;
  readonly #logs: readonly OutputLog[];
  readonly #onDropped: () => void;
  #timer: Timer;
  /** Whether output was offered and not yet taken; true before the first. */
  #is_offered = true;
  #stalled_checks = 0;
  #has_left = false;

  /** Nothing was taken yet, from the oldest kept byte or from the end on. */
  constructor(
    clock: Clock,
    logs: Logs,
    streams: readonly OutputStream[],
    from: 'first' | 'end',
    onDropped: () => void = () => {},
  ) {
    this.#clock = clock;
    this.#logs = streams.map((stream) => logs[stream]);
    this.#onDropped = onDropped;
    for (const log of this.#logs) log.holds.set(this, log[from]);
    this.#timer = this.#checkLater();
  }

  /** Notes that it has been offered output and has not yet taken it. */
  offer(): void {
    this.#is_offered = true;
  }

  /** Notes that it has taken everything before this position; has no effect once it has left or was dropped. */
  take(position: OutputPosition): void {
    if (this.#has_left) return;
    this.#is_offered = false;
    this.#stalled_checks = 0;
    for (const log of this.#logs) log.holds.set(this, position[log.stream]);
  }

  /** Holds nothing any more. Idempotent. */
  leave(): void {
    this.#has_left = true;
    this.#timer.cancel();
    for (const log of this.#logs) log.holds.delete(this);
  }

  #checkLater(): Timer {
    return this.#clock.after(CHECK_MS, () => {
      this.#stalled_checks = this.#is_offered ? this.#stalled_checks + 1 : 0;
      if (this.#stalled_checks <= CHECKS_MAX) {
        this.#timer = this.#checkLater();
        return;
      }
      this.leave();
      this.#onDropped();
    });
  }
}
