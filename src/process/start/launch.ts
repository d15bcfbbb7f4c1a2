import type { Clock } from '../../base/clock.ts';
import type { WaitStatus } from '../../base/linux/reaper.ts';
import type { PtySize } from '../../contract/processes.ts';
import type { OutputStream } from '../../contract/words.ts';
import type { OutputLog } from '../output/output-log.ts';
import type { Stdin } from '../stdin.ts';

/** Where the output of a run goes. */
export interface Outlet {
  clock: Clock;
  logs: Record<OutputStream, OutputLog>;
  /** Called with every piece of output before it is logged. */
  onOutput: (stream: OutputStream, data: Buffer) => void;
}

/** How a process ended; null if it is unknown. */
export type ExitStatus = WaitStatus | null;

/** The daemon's handle of a started process. */
export interface Launched {
  pid: number;
  /** When it began, in ticks after boot, which with the pid names it for good; 0 if that is unknown. */
  start_ticks: number;
  stdin: Stdin | null;
  /** Resolves when the process itself has ended, even if descendants still hold its pipes. */
  exited: Promise<ExitStatus>;
  /**
   * Null while the pid is its own; afterwards when it was last seen, in ticks after boot, or 0 if that is unknown.
   * The answer holds for the present step: a signal that is sent in the same step reaches no other process.
   */
  endedTicks(): number | null;
  /** Resolves when no process can write output any more and all of it is in the logs. */
  output_closed: Promise<void>;
  /** Copies what is in the pipes now into the logs. */
  drain(): void;
  /** Stops reading. The process is left alone. */
  close(): void;
  /** Changes the size of its terminal; absent if it has none. */
  resize?(size: PtySize): void;
}
