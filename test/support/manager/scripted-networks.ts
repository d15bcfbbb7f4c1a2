import type { NetworkState } from '../../../src/contract/network.ts';
import type { DirectionUsage, NetworkUsage } from '../../../src/contract/sandboxes.ts';
import type { NetworkSources, SandboxNetworks } from '../../../src/runtime/networks/sandbox-networks.ts';

/** Networks whose mode and counts the test says; each sandbox has one while it has a count. */
export class ScriptedNetworks implements SandboxNetworks {
  async closeOff(): Promise<void> {}

  mode: NetworkState = { mode: 'host-unmetered', reason: null, block_all: null };
  sources: NetworkSources | null = null;
  /** What the kernel has counted. */
  readonly counts = new Map<string, NetworkUsage>();
  /** Called with each refresh; may reject. */
  onRefresh: () => Promise<void> = async () => {};
  /** What was asked for: `verb id`. */
  readonly calls: string[] = [];

  /** Lets bytes pass, each in a packet of its own. */
  pass(sandbox_id: string, egress: number, ingress: number): void {
    const before = this.counts.get(sandbox_id) ?? usageOf(0, 0);
    const { egress: out, ingress: back } = before;
    this.counts.set(sandbox_id, usageOf(out.passed_bytes + egress, back.passed_bytes + ingress));
  }

  state(): NetworkState {
    return this.mode;
  }

  async open(sources: NetworkSources): Promise<void> {
    this.sources = sources;
  }

  async refresh(): Promise<void> {
    await this.onRefresh();
  }

  async usage(sandbox_id: string): Promise<NetworkUsage | null> {
    return this.counts.get(sandbox_id) ?? null;
  }

  async cut(sandbox_id: string): Promise<NetworkUsage | null> {
    this.calls.push(`cut ${sandbox_id}`);
    return this.usage(sandbox_id);
  }

  async close(): Promise<void> {
    this.calls.push('close');
  }
}

/** Usage with these bytes passed, and nothing held or dropped. */
export function usageOf(egress: number, ingress: number): NetworkUsage {
  const of = (passed_bytes: number): DirectionUsage => ({
    passed_bytes,
    passed_packets: passed_bytes,
    dropped_bytes: 0,
    dropped_packets: 0,
    waited_ms: 0,
  });
  return { egress: of(egress), ingress: of(ingress) };
}
