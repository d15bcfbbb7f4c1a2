import { authorityOf } from '../../webhook/connect-method.ts';
import type { Carrier } from '../egress/carrier.ts';
import { Egress, type EgressParts } from '../egress/egress.ts';
import { TunnelRefused } from '../egress/open-tunnel.ts';
import type { RuntimeSpec } from '../runtime.ts';
import type { Meta } from './api/objects.ts';
import type { Keepers } from './keepers.ts';
import { BLOCK_ALL_LABEL, WEBHOOK_ANNOTATION } from './names.ts';

/** A tunnel to a keeper is a TLS connection, which takes this process four times as long as one over a socket of the machine. */
const OPENED_PER_SECOND = 64;

/** What of a specification decides on a sandbox's network. */
type NetworkSpec = Pick<RuntimeSpec, 'network_mode' | 'webhook'>;

/** The metadata of a sandbox's Pod: with `block-all` network policies choose it by a label, and every manager learns where its webhook is. */
export function withNetwork<Manifest extends { metadata: Pick<Meta, 'labels'> }>(
  manifest: Manifest,
  spec: NetworkSpec,
): Manifest {
  if (spec.network_mode !== 'block-all') return manifest;
  const { metadata } = manifest;
  const authority = egressOf(spec);
  const annotations = authority === null ? {} : { annotations: { [WEBHOOK_ANNOTATION]: authority } };
  return {
    ...manifest,
    metadata: { ...metadata, labels: { ...metadata.labels, ...BLOCK_ALL_LABEL }, ...annotations },
  };
}

/** Where a sandbox's webhooks leave to through the manager, as `host:port`; null where they leave by themselves. */
function egressOf({ network_mode, webhook }: NetworkSpec): string | null {
  return webhook !== null && network_mode === 'block-all' ? authorityOf(new URL(webhook.url)) : null;
}

/**
 * The way of webhooks out of sandboxes with `block-all`, whose Pods may send nothing: every manager connects to their
 * keepers, so that no Pod has to reach a manager. Source: contract section 7, "Webhooks through the manager".
 */
export class PodEgress {
  readonly #egress: Egress;
  readonly #keepers: Pick<Keepers, 'connect'>;

  constructor(keepers: Pick<Keepers, 'connect'>, parts: EgressParts) {
    this.#keepers = keepers;
    // A keeper that cannot be reached is tried again when its Pod is seen to be well, not each second for ever.
    const isGone = (error: Error) => !(error instanceof TunnelRefused);
    this.#egress = new Egress({ ...parts, isGone, opened_per_second: OPENED_PER_SECOND });
  }

  /** See `Egress`. */
  carryBy(carrier: Carrier): void {
    this.#egress.carryBy(carrier);
  }

  /** Opens the way of a sandbox that was just made, if its webhook takes it. Idempotent. */
  openFor(spec: NetworkSpec & Pick<RuntimeSpec, 'sandbox_id'>): void {
    this.#open(spec.sandbox_id, egressOf(spec));
  }

  /** The same for a sandbox whose Pod is well, whoever made it. Idempotent. */
  openTo(sandbox_id: string, { annotations }: Meta): void {
    this.#open(sandbox_id, annotations?.[WEBHOOK_ANNOTATION] ?? null);
  }

  #open(sandbox_id: string, webhook_authority: string | null): void {
    const socket_address = () => this.#keepers.connect(sandbox_id);
    this.#egress.open({ sandbox_id, socket_address, webhook_authority });
  }

  /** Closes a sandbox's way. Idempotent. */
  close(sandbox_id: string): void {
    this.#egress.close(sandbox_id);
  }

  /** Closes every way. Idempotent. */
  stop(): void {
    this.#egress.stop();
  }
}
