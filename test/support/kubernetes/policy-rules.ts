import type { NetworkPolicy } from '../../../src/runtime/kubernetes/api/objects.ts';
import { NAMESPACE, type TestCluster } from './cluster.ts';

type Labels = Record<string, string>;

interface Selector {
  matchLabels?: Labels;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

interface Peer {
  ipBlock?: { cidr: string; except?: string[] };
  podSelector?: Selector;
  namespaceSelector?: Selector;
}

interface Rule {
  ports?: { port: number; protocol?: string }[];
  from?: Peer[];
  to?: Peer[];
}

/** A selector as `kubectl` takes it: what it chooses, the API server says. */
function selectorText({ matchLabels = {}, matchExpressions = [] }: Selector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const others = matchExpressions.map(
    ({ key, operator, values = [] }) => `${key} ${operator.toLowerCase()} (${values.join(',')})`,
  );
  return [...equal, ...others].join(',');
}

/**
 * What a network plugin that enforces the namespace's policies does, as far as the product's policies need it: rules in the
 * network namespace of a Pod. The cluster of the tests has no such plugin. `manager`: the address of what policies call
 * the manager, which is no Pod in the tests.
 */
export class PolicyRules {
  readonly #cluster: TestCluster;
  readonly #manager: string;

  constructor(cluster: TestCluster, manager: string) {
    this.#cluster = cluster;
    this.#manager = manager;
  }

  /** Enforces on a Pod what the policies of the namespace say now. */
  enforce(pod: string): void {
    const [address = ''] = this.#addresses(NAMESPACE, `--field-selector=metadata.name=${pod}`);
    const table = `table inet policies {\n${this.#chain(pod, 'Ingress')}\n${this.#chain(pod, 'Egress')}\n}`;
    const script = `for net in /run/netns/*; do
      if nsenter --net=$net ip -o -4 address | grep -q 'inet ${address}/'; then nsenter --net=$net nft -f - <<'RULES'
${table}
RULES
      fi; done`;
    this.#cluster.script('in', 'node1', 'sh', '-ec', script);
  }

  #chain(pod: string, type: 'Ingress' | 'Egress'): string {
    const [hook, direction, device] =
      type === 'Ingress' ? (['input', 'saddr', 'iif'] as const) : (['output', 'daddr', 'oif'] as const);
    const chosen = this.#policies().filter(({ spec }) => this.#chooses(spec, pod, type));
    const rules = chosen.flatMap(({ spec }) => {
      const given = (type === 'Ingress' ? spec.ingress : spec.egress) as Rule[] | undefined;
      return (given ?? []).flatMap((rule) => this.#allowed(rule, direction));
    });
    const policy = chosen.length === 0 ? 'accept' : 'drop';
    const always = [`${device} lo accept`, 'ct state established,related accept'];
    const lines = [`type filter hook ${hook} priority 0; policy ${policy};`, ...always, ...rules];
    return `chain ${hook} {\n${lines.join('\n')}\n}`;
  }

  #chooses({ podSelector, policyTypes }: NetworkPolicy['spec'], pod: string, type: string): boolean {
    if (!policyTypes?.includes(type)) return false;
    const selector = selectorText(podSelector as Selector);
    return this.#kubectl('get', 'pods', '-l', selector, '-o', 'name').split('\n').includes(`pod/${pod}`);
  }

  #allowed({ from, to, ports = [] }: Rule, direction: string): string[] {
    const peers = (from ?? to ?? [{ ipBlock: { cidr: '0.0.0.0/0' } }]).flatMap((peer) =>
      this.#peer(peer, direction),
    );
    const matches = ports.map(({ port, protocol = 'TCP' }) => `${protocol.toLowerCase()} dport ${port}`);
    return peers.flatMap((peer) =>
      (matches.length === 0 ? [''] : matches).map((match) => `${peer} ${match} accept`),
    );
  }

  #peer({ ipBlock, podSelector, namespaceSelector }: Peer, direction: string): string[] {
    if (ipBlock) {
      const { cidr, except = [] } = ipBlock;
      const family = cidr.includes(':') ? 'ip6' : 'ip';
      const without = except.length === 0 ? '' : `${family} ${direction} != { ${except.join(', ')} }`;
      return [`${family} ${direction} ${cidr} ${without}`];
    }
    if (podSelector?.matchLabels?.['app.kubernetes.io/name'] === 'sandbox-manager') {
      return [`ip ${direction} ${this.#manager}`];
    }
    const namespace = namespaceSelector?.matchLabels?.['kubernetes.io/metadata.name'] ?? NAMESPACE;
    const pods = this.#addresses(namespace, '-l', selectorText(podSelector ?? {}));
    return pods.map((address) => `ip ${direction} ${address}`);
  }

  #policies(): NetworkPolicy[] {
    return JSON.parse(this.#kubectl('get', 'networkpolicies', '-o', 'json')).items;
  }

  #addresses(namespace: string, ...args: string[]): string[] {
    const path = 'jsonpath={range .items[*]}{.status.podIP}{"\\n"}{end}';
    const text = this.#cluster.kubectl('-n', namespace, 'get', 'pods', ...args, '-o', path);
    return text.split('\n').filter((address) => address !== '');
  }

  #kubectl(...args: string[]): string {
    return this.#cluster.kubectl('-n', NAMESPACE, ...args);
  }
}
