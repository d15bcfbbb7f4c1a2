import type { Socket } from 'node:net';
import { type Clock, runTime } from '../base/clock.ts';
import { CONNECT_TIMEOUT_MS } from '../contract/defaults.ts';
import { CONNECT_TIMEOUT } from './attempt-error.ts';
import type { Connector } from './tunnelled.ts';

/** Limits how long `connector` may take: it has no limit of its own, and returns the socket that it connects. */
export function limited(clock: Clock, connector: Connector): Connector {
  const time = runTime(clock);
  return (target, done) => {
    const timer = time.after(CONNECT_TIMEOUT_MS, () => {
      socket?.destroy(Object.assign(new Error('no connection in time'), { code: CONNECT_TIMEOUT }));
    });
    const socket = connector(target, (...result) => {
      timer.cancel();
      done(...result);
    }) as Socket | undefined;
  };
}
