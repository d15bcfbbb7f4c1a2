import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../base/clock.ts';
import { EGRESS_PATH, EGRESS_PROTOCOL, EGRESS_TUNNELS_MAX } from '../../contract/control-socket.ts';
import type { DaemonAddress } from '../control-client.ts';
import type { ConnectServer } from './connect-server.ts';
import { openTunnel, type TunnelRequest } from './open-tunnel.ts';

const SECOND_MS = 1_000;

const EGRESS: TunnelRequest = { path: EGRESS_PATH, protocol: EGRESS_PROTOCOL };

/** What a `TunnelKeeper` works with. */
export interface TunnelKeeperParts {
  address: DaemonAddress;
  /** `host:port` of the webhook. */
  authority: string;
  server: ConnectServer;
  /** The stream to use instead of a connection to the webhook. */
  carry: (connection: Socket) => Promise<Duplex>;
  clock: Clock;
  /** Most tunnels that are opened in a second: a daemon that uses them up for nothing costs no more. */
  opened_per_second: number;
  /** Whether a tunnel that could not be opened means that nobody is there to open one to. */
  isGone: (error: Error) => boolean;
  /** Called when tunnels cannot be opened; they are tried again within a second. */
  onTrouble: (reason: string) => void;
  /** Called when the daemon is gone; nothing more happens then. */
  onGone: () => void;
}

/**
 * Keeps one idle tunnel open to a sandbox's daemon: a used one is replaced at once, as long as there are no more than 16.
 * If there are, one that the daemon has ended on its side makes room.
 */
export class TunnelKeeper {
  readonly #parts: TunnelKeeperParts;
  readonly #tunnels = new Set<Socket>();
  readonly #ended = new Set<Socket>();
  readonly #stopped = new AbortController();
  /** Whether there is an idle tunnel, or one is being opened. */
  #has_idle = false;
  /** The tunnels opened in the present second, which ends with the timer. */
  #opened = 0;
  #second: Timer | null = null;

  constructor(parts: TunnelKeeperParts) {
    this.#parts = parts;
  }

  /** Opens a tunnel where none is idle, if there may be one more. */
  readonly fill = (): void => {
    if (this.#has_idle || this.#stopped.signal.aborted) return;
    if (this.#opened >= this.#parts.opened_per_second) return;
    if (this.#tunnels.size >= EGRESS_TUNNELS_MAX) {
      const [ended] = this.#ended;
      // `fill` is called again when it has closed.
      ended?.destroy();
      return;
    }
    this.#has_idle = true;
    this.#opened += 1;
    this.#second ??= this.#parts.clock.after(SECOND_MS, () => {
      this.#second = null;
      this.#opened = 0;
      this.fill();
    });
    void this.#open();
  };

  async #open(): Promise<void> {
    const { address, isGone, onTrouble, onGone } = this.#parts;
    try {
      this.#serve(await openTunnel(address, EGRESS, this.#stopped.signal));
    } catch (error) {
      this.#has_idle = false;
      if (this.#stopped.signal.aborted) return;
      if (isGone(error as Error)) {
        this.stop();
        return onGone();
      }
      onTrouble((error as Error).message);
      this.#opened = this.#parts.opened_per_second;
    }
  }

  #serve(socket: Socket): void {
    if (this.#stopped.signal.aborted) return void socket.destroy();
    const { authority, server, carry } = this.#parts;
    let is_idle = true;
    const onUsed = () => {
      if (!is_idle) return;
      is_idle = false;
      this.#has_idle = false;
      this.fill();
    };
    this.#tunnels.add(socket);
    socket.once('close', () => {
      this.#tunnels.delete(socket);
      this.#ended.delete(socket);
      onUsed();
      this.fill();
    });
    const onEnd = () => {
      this.#ended.add(socket);
      this.fill();
    };
    server.serve(socket, { authority, carry, onRequest: onUsed, onEnd });
  }

  /** Closes every tunnel; what is sent on them is interrupted. Idempotent. */
  stop(): void {
    this.#stopped.abort();
    this.#second?.cancel();
    for (const tunnel of this.#tunnels) tunnel.destroy();
  }
}
