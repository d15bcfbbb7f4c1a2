import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { SandboxFiles, SandboxRecord } from '../sandbox-files.ts';
import { ConnectServer } from './connect-server.ts';
import { Dialer } from './dialer.ts';
import { TunnelKeeper } from './tunnel-keeper.ts';

/** What an `Egress` works with. */
export interface EgressParts {
  /** Ranges that webhooks may reach in addition to public addresses. */
  webhook_cidrs: string[];
  clock: Clock;
  log: Log;
}

/**
 * The way of webhooks out of sandboxes whose daemons cannot or must not connect by themselves. It leads over tunnels from
 * here to each daemon, and from here to the webhook's host and port alone. Any number of managers may keep tunnels to a
 * daemon. Source: contract section 7, "Network".
 */
export class Egress {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #server: ConnectServer;
  readonly #keepers = new Map<string, TunnelKeeper>();

  constructor({ webhook_cidrs, clock, log }: EgressParts) {
    this.#clock = clock;
    this.#log = log;
    this.#server = new ConnectServer(clock, new Dialer(clock, webhook_cidrs));
  }

  /** Opens the way of a created sandbox, if its webhook takes it. Idempotent. */
  open(
    { sandbox_id, socket_address }: Pick<SandboxFiles, 'sandbox_id' | 'socket_address'>,
    { webhook_authority, state }: Pick<SandboxRecord, 'webhook_authority' | 'state'>,
  ): void {
    if (!webhook_authority || state !== 'created' || this.#keepers.has(sandbox_id)) return;
    let is_reported = false;
    const keeper = new TunnelKeeper({
      socket_path: socket_address,
      authority: webhook_authority,
      server: this.#server,
      clock: this.#clock,
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
