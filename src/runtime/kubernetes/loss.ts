import type { Pod } from './api/objects.ts';
import type { Keepers } from './keepers.ts';
import { isSilent, isUp } from './pod-state.ts';

/**
 * Whether a Pod has lost its sandbox, which takes a proof: the Pod is being removed, it or one of its containers has ended,
 * or the cluster has not heard of its node for a while and its keeper does not answer. A daemon that is slow, a node whose
 * kubelet is away, and a cluster that cannot be asked prove nothing.
 */
export async function isPodLost(pod: Pod, keepers: Keepers, sandbox_id: string): Promise<boolean> {
  if (isUp(pod)) return false;
  return !isSilent(pod) || !(await keepers.isReached(sandbox_id));
}
