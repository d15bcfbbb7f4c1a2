import type { Socket } from 'node:net';
import { type Clock, runTime } from '../base/clock.ts';
import { CONNECT_TIMEOUT_MS } from '../contract/defaults.ts';
import { CONNECT_TIMEOUT } from './attempt-error.ts';
import { authorityOf } from './connect-method.ts';

/** Opens a stream to `host:port` through somebody else, who dials. Rejects with a `ConnectError`. */
export type OpenStream = (authority: string) => Promise<Socket>;

interface Target {
  protocol: string;
  hostname: string;
  port: string;
  /** A stream for TLS to use. */
  httpSocket?: Socket;
}

type Done = (...result: [null, Socket] | [Error, null]) => void;

/** How the HTTP library makes a connection. */
export type Connector = (target: Target, done: Done) => void;

/** Makes connections over streams that are opened elsewhere. `secure` does TLS over them, so that it ends here. */
export function tunnelled(clock: Clock, open: OpenStream, secure: Connector): Connector {
  const time = runTime(clock);
  return (target, done) => {
    const started_ms = time.monotonicMs();
    const withTls = (httpSocket: Socket) => {
      let is_over = false;
      const end: Done = (...result) => {
        if (is_over) return;
        is_over = true;
        timer.cancel();
        done(...result);
      };
      const left_ms = CONNECT_TIMEOUT_MS - (time.monotonicMs() - started_ms);
      const timer = time.after(left_ms, () => {
        end(Object.assign(new Error('the handshake did not end'), { code: CONNECT_TIMEOUT }), null);
        httpSocket.destroy();
      });
      secure({ ...target, httpSocket }, end);
    };
    void open(authorityOf(target)).then(
      (stream) => (target.protocol === 'https:' ? withTls(stream) : done(null, stream)),
      (error: Error) => done(error, null),
    );
  };
}
