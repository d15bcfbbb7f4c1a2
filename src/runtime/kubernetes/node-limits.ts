import { inParallel } from '../../base/in-parallel.ts';
import { ApiError } from '../../contract/errors.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { KubernetesObject } from './api/objects.ts';

/** Nodes that are asked: those of a cluster are configured alike. */
const NODES_MAX = 8;
const WHAT = 'how many processes a Pod may have (podPidsLimit of the kubelet)';

/**
 * What is to be said of the nodes: no Pod can bound its own processes, so that one without a bound of its node takes all of
 * that node's. A manager that has the right asks them; it is not to be given for this, as it is one to all Pods.
 */
export async function processLimitations(client: ClusterClient): Promise<string[]> {
  const unbounded: string[] = [];
  let known = 0;
  try {
    for await (const { items } of client.pages<KubernetesObject>('/api/v1/nodes', {
      page: NODES_MAX,
      form: 'metadata',
    })) {
      await inParallel(items, NODES_MAX, async ({ metadata: { name } }) => {
        const limit = await podPidsLimit(client, name);
        if (limit === null) return;
        known += 1;
        if (limit <= 0) unbounded.push(name);
      });
      break;
    }
  } catch (error) {
    if (!isUnknown(error)) throw error;
  }
  if (unbounded.length > 0) return [`${WHAT} is not bounded on ${unbounded.sort().join(', ')}`];
  return known > 0 ? [] : [`${WHAT} is the nodes' to bound, and not known to the manager`];
}

/** Null where a node does not say. Source: Kubernetes, `KubeletConfiguration`. */
async function podPidsLimit(client: ClusterClient, node: string): Promise<number | null> {
  try {
    const path = `/api/v1/nodes/${encodeURIComponent(node)}/proxy/configz`;
    const said = (await client.value(path)) as { kubeletconfig?: { podPidsLimit?: unknown } } | null;
    const limit = said?.kubeletconfig?.podPidsLimit;
    return typeof limit === 'number' ? limit : null;
  } catch (error) {
    if (isUnknown(error)) return null;
    throw error;
  }
}

function isUnknown(error: unknown): boolean {
  return error instanceof ClusterRefusal || (error instanceof ApiError && error.code === 'unavailable');
}
