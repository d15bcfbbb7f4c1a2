import {
  ENDED_PROCESSES_MAX,
  ENDED_PROCESSES_MAX_BYTES,
  ENDED_PROCESSES_RETAIN_MS,
} from '../contract/defaults.ts';

/** An ended process, as far as its retention goes. */
export interface EndedProcess {
  process_id: string;
  exited_at_ms: number;
  size_bytes: number;
}

/** Which ended processes are no longer kept: by age, then the oldest beyond the number and the size. */
export function expiredProcesses(ended: readonly EndedProcess[], now_ms: number): string[] {
  const newest_first = [...ended].sort((a, b) => b.exited_at_ms - a.exited_at_ms);
  let kept = 0;
  let kept_bytes = 0;
  return newest_first
    .filter(({ exited_at_ms, size_bytes }) => {
      kept += 1;
      kept_bytes += size_bytes;
      const is_old = now_ms - exited_at_ms > ENDED_PROCESSES_RETAIN_MS;
      return is_old || kept > ENDED_PROCESSES_MAX || kept_bytes > ENDED_PROCESSES_MAX_BYTES;
    })
    .map(({ process_id }) => process_id);
}
