import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { DaemonAddress } from '../control-client.ts';
import type { Carrier } from './carrier.ts';
import { ConnectServer } from './connect-server.ts';
import { Dialer } from './dialer.ts';
import { TunnelKeeper } from './tunnel-keeper.ts';

/** Nobody listens on a control socket any more, which happens only when the daemon has ended. */
const GONE = new Set<string | undefined>(['ECONNREFUSED', 'ENOENT']);

const OPENED_PER_SECOND = 256;

/** What an `Egress` works with. */
export interface EgressParts {
  /** Ranges that webhooks may reach in addition to public addresses. */
  webhook_cidrs: string[];
  clock: Clock;
  log: Log;
  /**
   * Whether an error in connecting to a daemon ends its sandbox's way, which may be opened again; after any other it is tried
   * each second. Without it: where nobody listens on the control socket.
   */
  isGone?: (error: Error) => boolean;
  /** Most tunnels that are opened to a sandbox in a second; 256 without it. */
  opened_per_second?: number;
}

/** The sandbox of a way, where its daemon is, and where its webhook is. */
export interface EgressSandbox {
  sandbox_id: string;
  socket_address: DaemonAddress;
  /** `host:port` of a webhook that leaves through the manager; null if there is none, or it does not. */
  webhook_authority: string | null;
}

/**
 * The way of webhooks out of sandboxes whose daemons cannot or must not connect by themselves. It leads over tunnels from
 * here to each daemon, and from here to the webhook's host and port alone. Any number of managers may keep tunnels to a
 * daemon. Source: contract section 7, "Network".
 */
export class Egress {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #is_gone: (error: Error) => boolean;
  readonly #opened_per_second: number;
  readonly #server: ConnectServer;
  readonly #keepers = new Map<string, TunnelKeeper>();
  #carrier: Carrier = { carry: async (_sandbox_id, connection) => connection };

  constructor({ webhook_cidrs, clock, log, isGone, opened_per_second = OPENED_PER_SECOND }: EgressParts) {
    this.#clock = clock;
    this.#log = log;
    this.#is_gone = isGone ?? (({ code }: NodeJS.ErrnoException) => GONE.has(code));
    this.#opened_per_second = opened_per_second;
    this.#server = new ConnectServer(clock, new Dialer(clock, webhook_cidrs));
  }

  /** Sets who carries the bytes from now on. */
  carryBy(carrier: Carrier): void {
    this.#carrier = carrier;
  }

  /** Opens the way of a created sandbox, if its webhook takes it. Idempotent. */
  open({ sandbox_id, socket_address, webhook_authority }: EgressSandbox): void {
    if (webhook_authority === null || this.#keepers.has(sandbox_id)) return;
    let is_reported = false;
    const keeper = new TunnelKeeper({
      address: socket_address,
      authority: webhook_authority,
      server: this.#server,
      carry: (connection) => this.#carrier.carry(sandbox_id, connection),
      clock: this.#clock,
      isGone: this.#is_gone,
      opened_per_second: this.#opened_per_second,
      onTrouble: (reason) => {
        if (!is_reported) this.#log.warn({ sandbox_id, reason }, 'webhooks cannot leave the sandbox');
        is_reported = true;
      },
      onGone: () => {
        if (this.#keepers.get(sandbox_id) === keeper) this.#keepers.delete(sandbox_id);
      },
    });
    this.#keepers.set(sandbox_id, keeper);
    keeper.fill();
  }

  /** Closes a sandbox's way; attempts in flight fail, as when a connection is reset. Idempotent. */
  close(sandbox_id: string): void {
    this.#keepers.get(sandbox_id)?.stop();
    this.#keepers.delete(sandbox_id);
  }

  /** Closes every way. Idempotent. */
  stop(): void {
    for (const sandbox_id of this.#keepers.keys()) this.close(sandbox_id);
  }
}
