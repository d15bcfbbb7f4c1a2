import type { Socket } from 'node:net';
import { pipeline } from 'node:stream';
import type { Clock } from '../../base/clock.ts';
import { ATTEMPT_TIMEOUT_MS } from '../../contract/defaults.ts';

/** How long a connection with one direction ended stays open: as long as an attempt may take. */
const HALF_OPEN_MS = ATTEMPT_TIMEOUT_MS;

/**
 * Passes bytes between two streams, no faster than either takes them. The end of a direction is passed on; an error, or a
 * close, closes both.
 */
export function join(clock: Clock, one: Socket, other: Socket): void {
  const close = () => {
    one.destroy();
    other.destroy();
  };
  if (one.destroyed || other.destroyed) {
    close();
    return;
  }
  const [there, back] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  pipeline(one, other, () => there.resolve());
  pipeline(other, one, () => back.resolve());
  void Promise.race([there.promise, back.promise]).then(() => {
    const timer = clock.after(HALF_OPEN_MS, close);
    void Promise.all([there.promise, back.promise]).then(() => {
      timer.cancel();
      close();
    });
  });
}
