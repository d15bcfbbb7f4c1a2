import { DaemonError } from '../api/client.ts';
import { type Failure, RUN_FAILED } from '../failure.ts';

/**
 * The exit code of a `run` that failed: 127 where its command is not found, 126 where it cannot be started otherwise, and
 * 125 for everything else, as of `docker run`. Contract section 4, "`sandboxctl`".
 */
export function runExitCode(failure: Failure): number {
  const code = failure instanceof DaemonError ? failure.details?.exit_code : undefined;
  return code === 126 || code === 127 ? code : RUN_FAILED;
}
