import { ApiError } from '../../contract/errors.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { Pod } from './api/objects.ts';
import { resourcesOf, SANDBOX } from './manifests.ts';
import type { Pods } from './pods.ts';
import type { FoundRecord } from './records.ts';

const RESIZE_TIMEOUT_MS = 30_000;

/**
 * Gives a sandbox's containers what its record says, without a restart. Throws `capacity_exhausted` where its node has no
 * room, and then everything is as before.
 */
export async function resizePod(
  client: ClusterClient,
  pods: Pods,
  { record, claim: { name } }: FoundRecord,
): Promise<void> {
  const before = await pods.read(name);
  if (before === null) throw new ApiError('internal_error', "The sandbox's Pod was removed.");
  const resize = (resources: object) =>
    client.strategicPatch<Pod>(`${client.path('pods', name)}/resize`, {
      spec: { containers: [{ name: SANDBOX, resources }] },
    });
  const limits = resourcesOf(record);
  const asked = await resize({ requests: limits, limits }).catch((error) => {
    if (!(error instanceof ClusterRefusal)) throw error;
    throw new ApiError('capacity_exhausted', `The cluster refuses the change: ${error.message}`);
  });
  let why: string | null = null;
  const is_done = await pods.wait(asked, RESIZE_TIMEOUT_MS, (pod) => {
    why = refusalIn(pod);
    return why !== null || memoryOf(pod) === limits.memory;
  });
  if (is_done && why === null) return;
  await resize(resourcesIn(before));
  throw new ApiError('capacity_exhausted', `The sandbox's node has no room: ${why ?? 'it takes too long'}`);
}

/** Ends the start of a sandbox: from now on it has the cores that it was given, and no more. Throws ClusterRefusal. */
export async function applyFinalResources(
  client: ClusterClient,
  { record, claim }: FoundRecord,
): Promise<void> {
  const limits = resourcesOf(record);
  await client.strategicPatch(`${client.path('pods', claim.name)}/resize`, {
    spec: { containers: [{ name: SANDBOX, resources: { requests: limits, limits } }] },
  });
}

function refusalIn({ status }: Pod): string | null {
  const pending = status?.conditions?.find(({ type }) => type === 'PodResizePending');
  return pending === undefined ? null : (pending.message ?? pending.reason ?? 'refused');
}

/** The memory that the node has given, as it was asked for. */
function memoryOf({ status }: Pod): string | undefined {
  return status?.containerStatuses?.find(({ name }) => name === SANDBOX)?.resources?.limits?.memory;
}

function resourcesIn({ spec }: Pod): object {
  return spec.containers?.find(({ name }) => name === SANDBOX)?.resources ?? {};
}
