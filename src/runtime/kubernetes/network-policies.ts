import { invalidField } from '../../contract/errors.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { NetworkPolicy } from './api/objects.ts';
import { BLOCK_ALL_LABEL, MANAGED } from './names.ts';
import { strangersIn } from './network-peers.ts';
import { selects } from './selectors.ts';

const GROUP = 'networking.k8s.io';
const [BLOCKED_TEXT] = Object.entries(BLOCK_ALL_LABEL).map(([key, value]) => `${key}=${value}`);

/**
 * Throws `invalid_request` where the namespace's network policies do not hold what `block-all` promises. Whether the cluster's
 * network plugin enforces policies at all is known to nobody here.
 */
export async function checkBlocked(client: ClusterClient, labels: Record<string, string>): Promise<void> {
  const why = await whyNotBlocked(client, labels);
  if (why !== null) throw invalidField('config.network.mode', `is not enforced here: ${why}`);
}

/**
 * Why the namespace's network policies do not keep a Pod with `block-all` from sending, and from being reached by everybody;
 * null if they do. `labels`: those of the Pod besides.
 */
export async function whyNotBlocked(
  client: ClusterClient,
  labels: Record<string, string> = MANAGED,
): Promise<string | null> {
  try {
    const policies = await client.list<NetworkPolicy>(client.path('networkpolicies', undefined, GROUP));
    return gapIn(policies, { ...labels, ...BLOCK_ALL_LABEL }, client.namespace);
  } catch (error) {
    if (!(error instanceof ClusterRefusal) || error.status !== 403) throw error;
    return `the manager lacks the right to list networkpolicies of ${GROUP}`;
  }
}

/** What policies leave open to a Pod with these labels. They add up: what one allows, no other takes away. */
export function gapIn(
  policies: NetworkPolicy[],
  labels: Record<string, string>,
  namespace: string,
): string | null {
  const chosen = policies.filter(({ spec }) => selects(spec.podSelector, labels));
  const out = chosen.filter(({ spec }) => typesOf(spec).includes('Egress'));
  if (out.length === 0) return `no network policy keeps Pods with the label ${BLOCKED_TEXT} from sending`;
  const leak = out.find(({ spec }) => (spec.egress ?? []).length > 0);
  if (leak) return `the network policy ${leak.metadata.name} lets Pods with the label ${BLOCKED_TEXT} send`;
  const into = chosen.filter(({ spec }) => typesOf(spec).includes('Ingress'));
  if (into.length === 0) return `no network policy keeps others from Pods with the label ${BLOCKED_TEXT}`;
  const open = into.find(({ spec }) => spec.ingress?.some(({ from }) => (from ?? []).length === 0));
  // Ports do not matter: whoever may reach one may reach the sandbox's.
  const peers = into.flatMap(({ spec }) => (spec.ingress ?? []).flatMap(({ from }) => from ?? []));
  const strangers = open ? 'everybody' : strangersIn(peers, namespace);
  if (strangers === null) return null;
  const names = open ? [open.metadata.name] : into.map(({ metadata }) => metadata.name).sort();
  const who = names.length > 1 ? `policies ${names.join(', ')} together let` : `policy ${names[0]} lets`;
  return `the network ${who} ${strangers} reach Pods with the label ${BLOCKED_TEXT}`;
}

/** Source: Kubernetes, `NetworkPolicySpec.policyTypes`. */
function typesOf({ policyTypes, egress }: NetworkPolicy['spec']): string[] {
  return policyTypes ?? ['Ingress', ...(egress ? ['Egress'] : [])];
}
