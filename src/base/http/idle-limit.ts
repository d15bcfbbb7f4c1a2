import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, runTime } from '../clock.ts';

/** Longer than any transfer. */
const DAY_MS = 24 * 60 * 60 * 1_000;

/**
 * Cuts a connection on which no byte moves for `idle_ms`, also within one long write, until its answer is closed, or it
 * itself if it is given in the answer's place. Time in which this program was stopped does not count.
 */
export function limitIdle(
  answer: ServerResponse | Socket,
  socket: Socket,
  idle_ms: number,
  clock: Clock,
): void {
  const time = runTime(clock);
  const stoppedMs = () => clock.monotonicMs() - time.monotonicMs();
  let seen_ms = stoppedMs();
  // A stop is noticed while something waits.
  const waiting = time.after(DAY_MS, () => {});
  answer.once('close', () => waiting.cancel());
  socket.setTimeout(idle_ms);
  // With a listener Node leaves the connection open.
  answer.on('timeout', () => {
    if (stoppedMs() <= seen_ms) {
      socket.destroy();
      return;
    }
    seen_ms = stoppedMs();
    socket.setTimeout(idle_ms);
  });
}
