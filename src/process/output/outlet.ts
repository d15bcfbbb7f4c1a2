import type { Clock } from '../../base/clock.ts';
import type { OutputStream } from '../../contract/processes.ts';
import type { OutputLog } from './output-log.ts';

/** Where the output of a run goes. */
export interface Outlet {
  clock: Clock;
  logs: Record<OutputStream, OutputLog>;
  /** Called with every piece of output before it is logged. */
  onOutput: (stream: OutputStream, data: Buffer) => void;
}
