import { existsSync, readFileSync } from 'node:fs';
import { type Direction, type PerDirection, QUEUES, UDP_QUEUES } from '../directions.ts';
import type { Addresses, Link } from './addresses.ts';
import type { NodeGroup } from './node-group.ts';

/** The input of `ip`, `nft` and `iptables-restore` for one sandbox. */

/** Whether this machine has IPv6, and gives addresses of it to new interfaces. */
const HAS_IPV6 = ((file: string) => existsSync(file) && readFileSync(file, 'utf8').trim() === '0')(
  '/proc/sys/net/ipv6/conf/default/disable_ipv6',
);

/** The sandbox's end of its link, in its namespace. */
const INTERFACE = 'eth0';

/** For `ip -batch`, on the node: a namespace, and the link to it. The link's alias says whose it is. */
export function nodeLinkText(namespace: string, link: Link, group: NodeGroup, has_ipv6 = HAS_IPV6): string {
  const name = link.interface;
  return lines(
    `netns add ${namespace}`,
    `link add ${name} address ${link.node.ethernet} group ${group.number} type veth peer name ${INTERFACE} address ${link.sandbox.ethernet} netns ${namespace}`,
    `link set ${name} alias ${namespace}`,
    ...(has_ipv6 ? [`link set ${name} addrgenmode none`] : []),
    `address add ${link.node.ipv4}/31 dev ${name}`,
    ...(has_ipv6 ? [`address add ${link.node.ipv6}/127 dev ${name} nodad`] : []),
    `link set ${name} up`,
    ...neighbourText(link.sandbox, name, has_ipv6),
  );
}

/**
 * Each end knows the other for good. Asking for it would be metered like all else, and without a link-local address the
 * kernel cannot ask again.
 */
function neighbourText({ ipv4, ipv6, ethernet }: Addresses, name: string, has_ipv6: boolean): string[] {
  return [ipv4, ...(has_ipv6 ? [ipv6] : [])].map(
    (ip) => `neighbour add ${ip} lladdr ${ethernet} nud permanent dev ${name}`,
  );
}

/** The settings of a sandbox's namespace. */
export interface SandboxSetUp {
  link: Link;
  is_metered: PerDirection<boolean>;
}

/** For `sh`, in the sandbox's namespace: addresses, settings, counters and queues, in one program. */
export function sandboxScript({ link, is_metered }: SandboxSetUp, has_ipv6 = HAS_IPV6): string {
  const settings = Object.entries({ ...IPV4_SETTINGS, ...(has_ipv6 ? IPV6_SETTINGS : {}) });
  const queues = is_metered.egress || is_metered.ingress ? queueText(is_metered) : null;
  return lines(
    'set -e',
    ...settings.map(([key, value]) => `echo '${value}' >/proc/sys/net/${key}`),
    ...(has_ipv6 ? [] : [`[ ! -e ${NO_IPV6} ] || echo 1 >${NO_IPV6}`]),
    withInput('nft -f -', sandboxRules(link.node, has_ipv6)),
    ...(queues ? queuePrograms(has_ipv6).map((program) => withInput(program, queues)) : []),
    // The link goes up last, so that no packet passes uncounted.
    withInput('ip -batch -', sandboxLinkText(link, has_ipv6)),
  );
}

/** For `ip -batch`, in the sandbox's namespace. */
function sandboxLinkText(link: Link, has_ipv6: boolean): string {
  const ipv6 = (...all: string[]) => (has_ipv6 ? all : []);
  return lines(
    'link set lo up',
    ...ipv6(`link set ${INTERFACE} addrgenmode none`),
    `address add ${link.sandbox.ipv4}/31 dev ${INTERFACE}`,
    ...ipv6(`address add ${link.sandbox.ipv6}/127 dev ${INTERFACE} nodad`),
    `link set ${INTERFACE} up`,
    ...neighbourText(link.node, INTERFACE, has_ipv6),
    `route add default via ${link.node.ipv4} dev ${INTERFACE}`,
    ...ipv6(`route add default via ${link.node.ipv6} dev ${INTERFACE}`),
  );
}

/** The kernel settings of a sandbox's namespace: its programs may send pings. */
const IPV4_SETTINGS: Readonly<Record<string, string>> = { 'ipv4/ping_group_range': '0 2147483647' };
/** Router advertisements are ignored. */
const IPV6_SETTINGS: Readonly<Record<string, string>> = {
  'ipv6/conf/all/accept_ra': '0',
  'ipv6/conf/default/accept_ra': '0',
};

const NO_IPV6 = `/proc/sys/net/ipv6/conf/${INTERFACE}/disable_ipv6`;

/** The programs that take `queueText`. */
export function queuePrograms(has_ipv6 = HAS_IPV6): string[] {
  return ['iptables-restore', ...(has_ipv6 ? ['ip6tables-restore'] : [])];
}

/** The table with the counters, in a sandbox's namespace. */
export const COUNTER_TABLE = 'sandbox';

/**
 * For `nft`, in the sandbox's namespace: counts the packets that passed the queues, whoever gave the verdict, and refuses
 * what is sent to anyone but the node. The kernel has one table of neighbours for all namespaces, of 1 024 by default, and
 * whoever binds a socket to its interface may take any address, or group, for one that is on its link.
 */
function sandboxRules({ ipv4, ipv6 }: Addresses, has_ipv6: boolean): string {
  return lines(
    `table inet ${COUNTER_TABLE} {`,
    ' counter egress { }',
    ' counter ingress { }',
    ' chain neighbours { type filter hook output priority 300;',
    `  oifname "${INTERFACE}" meta nfproto ipv4 rt ip nexthop != ${ipv4} drop`,
    ...(has_ipv6 ? [`  oifname "${INTERFACE}" meta nfproto ipv6 rt ip6 nexthop != ${ipv6} drop`] : []),
    ' }',
    ` chain egress { type filter hook postrouting priority 300; oifname "${INTERFACE}" counter name egress; }`,
    ` chain ingress { type filter hook prerouting priority 300; iifname "${INTERFACE}" counter name ingress; }`,
    '}',
  );
}

/**
 * For `iptables-restore` and `ip6tables-restore`, in the sandbox's namespace: sends the packets of the metered
 * directions to their queues, and replaces what was there in one step. Without a reader the kernel drops them.
 */
export function queueText(is_metered: PerDirection<boolean>): string {
  return lines(
    '*mangle',
    ':PREROUTING ACCEPT [0:0]',
    ':POSTROUTING ACCEPT [0:0]',
    ...(is_metered.egress ? queueRules(`POSTROUTING -o ${INTERFACE}`, 'egress') : []),
    ...(is_metered.ingress ? queueRules(`PREROUTING -i ${INTERFACE}`, 'ingress') : []),
    'COMMIT',
  );
}

function queueRules(chain: string, direction: Direction): string[] {
  return [
    `-A ${chain} -p udp -j NFQUEUE --queue-num ${UDP_QUEUES[direction]}`,
    `-A ${chain} -j NFQUEUE --queue-num ${QUEUES[direction]}`,
  ];
}

/**
 * For `sh`, on the node: enables forwarding. Interfaces that accept router advertisements keep doing so, which
 * forwarding would otherwise turn off.
 */
export const FORWARDING_SCRIPT = lines(
  'set -e',
  'cd /proc/sys/net',
  'for file in ipv6/conf/*/accept_ra; do [ ! -e "$file" ] || [ "$(cat "$file")" != 1 ] || echo 2 >"$file"; done',
  'echo 1 >ipv4/ip_forward',
  '[ ! -e ipv6/conf/all/forwarding ] || echo 1 >ipv6/conf/all/forwarding',
);

/** For `sh`, on the node: lets a name server on the node's loopback interface answer at the node's end of a link. */
export function localDnsScript(link: Link): string {
  return lines(`echo 1 >/proc/sys/net/ipv4/conf/${link.interface}/route_localnet`);
}

/** An `sh` command with its input. */
function withInput(command: string, input: string): string {
  return `${command} <<'END'\n${input}END`;
}

/** Lines, each with its end. */
export function lines(...all: string[]): string {
  return `${all.join('\n')}\n`;
}
