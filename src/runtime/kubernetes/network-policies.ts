import { invalidField } from '../../contract/errors.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { LabelSelector, NetworkPolicy } from './api/objects.ts';
import { BLOCK_ALL_LABEL, MANAGED } from './names.ts';

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
    return gapIn(policies, { ...labels, ...BLOCK_ALL_LABEL });
  } catch (error) {
    if (!(error instanceof ClusterRefusal) || error.status !== 403) throw error;
    return `the manager lacks the right to list networkpolicies of ${GROUP}`;
  }
}

/** What policies leave open to a Pod with these labels. They add up: what one allows, no other takes away. */
export function gapIn(policies: NetworkPolicy[], labels: Record<string, string>): string | null {
  const chosen = policies.filter(({ spec }) => selects(spec.podSelector, labels));
  const out = chosen.filter(({ spec }) => typesOf(spec).includes('Egress'));
  if (out.length === 0) return `no network policy keeps Pods with the label ${BLOCKED_TEXT} from sending`;
  const leak = out.find(({ spec }) => (spec.egress ?? []).length > 0);
  if (leak) return `the network policy ${leak.metadata.name} lets Pods with the label ${BLOCKED_TEXT} send`;
  const into = chosen.filter(({ spec }) => typesOf(spec).includes('Ingress'));
  if (into.length === 0) return `no network policy keeps others from Pods with the label ${BLOCKED_TEXT}`;
  const open = into.find(({ spec }) => spec.ingress?.some(({ from }) => (from ?? []).length === 0));
  if (open)
    return `the network policy ${open.metadata.name} lets everybody reach Pods with the label ${BLOCKED_TEXT}`;
  return null;
}

/** Source: Kubernetes, `NetworkPolicySpec.policyTypes`. */
function typesOf({ policyTypes, egress }: NetworkPolicy['spec']): string[] {
  return policyTypes ?? ['Ingress', ...(egress ? ['Egress'] : [])];
}

/** Whether a selector chooses what has these labels; an empty one chooses all. Source: Kubernetes, `LabelSelector`. */
export function selects(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Record<string, string>,
) {
  const is_equal = Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
  return is_equal && matchExpressions.every((expression) => holds(expression, labels));
}

type Expression = NonNullable<LabelSelector['matchExpressions']>[number];

function holds({ key, operator, values = [] }: Expression, labels: Record<string, string>): boolean {
  const value = labels[key];
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}
