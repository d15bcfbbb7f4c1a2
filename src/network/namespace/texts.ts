import { type PerDirection, QUEUES } from '../directions.ts';
import { type Addresses, LINK_PATTERN, type Link, SANDBOX_CIDRS } from './addresses.ts';

/** The input of `ip`, `nft` and `iptables-restore`. */

/** The sandbox's end of its link, in its namespace. */
const INTERFACE = 'eth0';

/** Cloud metadata services, which hand out the machine's secrets, beyond the link-local addresses. */
const METADATA = {
  ipv4: ['100.100.100.200', '168.63.129.16', '192.0.0.192'],
  ipv6: ['fd00:ec2::254', 'fd20:ce::254'],
};

/** The verdict that blocks a packet and notifies its sender. */
const REJECT = 'reject with icmpx type admin-prohibited';

/** For `ip -batch`, on the node: a namespace, and the link to it. The link's alias says whose it is. */
export function nodeLinkText(namespace: string, link: Link): string {
  const name = link.interface;
  return lines(
    `netns add ${namespace}`,
    `link add ${name} address ${link.node.ethernet} type veth peer name ${INTERFACE} address ${link.sandbox.ethernet} netns ${namespace}`,
    `link set ${name} alias ${namespace}`,
    `link set ${name} addrgenmode none`,
    `address add ${link.node.ipv4}/31 dev ${name}`,
    `address add ${link.node.ipv6}/127 dev ${name} nodad`,
    `link set ${name} up`,
    ...neighbourText(link.sandbox, name),
  );
}

/**
 * Each end knows the other for good. Asking for it would be metered like all else, and without a link-local address the
 * kernel cannot ask again.
 */
function neighbourText({ ipv4, ipv6, ethernet }: Addresses, name: string): string[] {
  return [ipv4, ipv6].map((ip) => `neighbour add ${ip} lladdr ${ethernet} nud permanent dev ${name}`);
}

/** The settings of a sandbox's namespace. */
export interface SandboxSetUp {
  link: Link;
  is_metered: PerDirection<boolean>;
}

/** For `sh`, in the sandbox's namespace: addresses, settings, counters and queues, in one program. */
export function sandboxScript({ link, is_metered }: SandboxSetUp): string {
  const settings = Object.entries(SANDBOX_SETTINGS);
  const queues = is_metered.egress || is_metered.ingress ? queueText(is_metered) : null;
  return lines(
    'set -e',
    ...settings.map(([key, value]) => `echo '${value}' >/proc/sys/net/${key}`),
    withInput('nft -f -', COUNTERS_TEXT),
    ...(queues ? ['iptables-restore', 'ip6tables-restore'].map((program) => withInput(program, queues)) : []),
    // The link goes up last, so that no packet passes uncounted.
    withInput('ip -batch -', sandboxLinkText(link)),
  );
}

/** For `ip -batch`, in the sandbox's namespace. */
function sandboxLinkText(link: Link): string {
  return lines(
    'link set lo up',
    `link set ${INTERFACE} addrgenmode none`,
    `address add ${link.sandbox.ipv4}/31 dev ${INTERFACE}`,
    `address add ${link.sandbox.ipv6}/127 dev ${INTERFACE} nodad`,
    `link set ${INTERFACE} up`,
    ...neighbourText(link.node, INTERFACE),
    `route add default via ${link.node.ipv4} dev ${INTERFACE}`,
    `route add default via ${link.node.ipv6} dev ${INTERFACE}`,
  );
}

/**
 * The kernel settings of the sandbox's namespace: its programs may send pings, and router advertisements are ignored.
 */
const SANDBOX_SETTINGS: Readonly<Record<string, string>> = {
  'ipv4/ping_group_range': '0 2147483647',
  'ipv6/conf/all/accept_ra': '0',
  'ipv6/conf/default/accept_ra': '0',
};

/** For `nft`, in the sandbox's namespace: counts the packets that passed the queues, whoever gave the verdict. */
const COUNTERS_TEXT = lines(
  'table inet sandbox {',
  ' counter egress { }',
  ' counter ingress { }',
  ` chain egress { type filter hook postrouting priority 300; oifname "${INTERFACE}" counter name egress; }`,
  ` chain ingress { type filter hook prerouting priority 300; iifname "${INTERFACE}" counter name ingress; }`,
  '}',
);

/**
 * For `iptables-restore` and `ip6tables-restore`, in the sandbox's namespace: sends the packets of the metered
 * directions to their queues, and replaces what was there in one step. Without a reader the kernel drops them.
 */
export function queueText(is_metered: PerDirection<boolean>): string {
  return lines(
    '*mangle',
    ':PREROUTING ACCEPT [0:0]',
    ':POSTROUTING ACCEPT [0:0]',
    ...(is_metered.egress ? [`-A POSTROUTING -o ${INTERFACE} -j NFQUEUE --queue-num ${QUEUES.egress}`] : []),
    ...(is_metered.ingress ? [`-A PREROUTING -i ${INTERFACE} -j NFQUEUE --queue-num ${QUEUES.ingress}`] : []),
    'COMMIT',
  );
}

/** What sandboxes may reach besides the outside. */
export interface NodeRules {
  links: readonly Link[];
  /** `--allow-sandbox-cidr`. */
  allowed_cidrs: readonly string[];
}

/** For `nft`, on the node: replaces the whole table in one step. */
export function nodeRulesText({ links, allowed_cidrs }: NodeRules): string {
  const from_sandbox = `iifname "${LINK_PATTERN}"`;
  const to_sandbox = `oifname "${LINK_PATTERN}"`;
  return lines(
    'table inet sandboxes',
    'delete table inet sandboxes',
    'table inet sandboxes {',
    ` set ipv4 { type ifname . ipv4_addr; ${elements(links.map(ipv4Element))} }`,
    ` set ipv6 { type ifname . ipv6_addr; ${elements(links.map(ipv6Element))} }`,
    ` set allowed4 { type ipv4_addr; flags interval; auto-merge; ${elements(allowed_cidrs.filter(isIpv4))} }`,
    ` set allowed6 { type ipv6_addr; flags interval; auto-merge; ${elements(allowed_cidrs.filter((cidr) => !isIpv4(cidr)))} }`,
    ' chain forged { type filter hook prerouting priority -300;',
    `  ${from_sandbox} meta nfproto ipv4 iifname . ip saddr != @ipv4 drop`,
    `  ${from_sandbox} meta nfproto ipv6 iifname . ip6 saddr != @ipv6 drop`,
    ' }',
    ' chain to_node { type filter hook input priority 0;',
    `  iifname != "${LINK_PATTERN}" accept`,
    '  ct state established,related accept',
    '  icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept',
    '  ip daddr @allowed4 accept',
    '  ip6 daddr @allowed6 accept',
    `  ${REJECT}`,
    ' }',
    ' chain through_node { type filter hook forward priority 0;',
    `  iifname != "${LINK_PATTERN}" oifname != "${LINK_PATTERN}" accept`,
    '  ct state established,related accept',
    `  ${from_sandbox} ip daddr @allowed4 accept`,
    `  ${from_sandbox} ip6 daddr @allowed6 accept`,
    // Published ports, for peers outside.
    `  iifname != "${LINK_PATTERN}" ct status dnat accept`,
    `  ${to_sandbox} ${REJECT}`,
    `  ip daddr { 169.254.0.0/16, ${METADATA.ipv4.join(', ')} } ${REJECT}`,
    `  ip6 daddr { fe80::/10, ${METADATA.ipv6.join(', ')} } ${REJECT}`,
    ' }',
    ' chain outside { type nat hook postrouting priority 100;',
    `  ip saddr ${SANDBOX_CIDRS.ipv4} oifname != "${LINK_PATTERN}" masquerade`,
    `  ip6 saddr ${SANDBOX_CIDRS.ipv6} oifname != "${LINK_PATTERN}" masquerade`,
    ' }',
    '}',
  );
}

/** For `nft`, on the node: lets a link's packets through, with its own addresses as their source. */
export function admitText(link: Link): string {
  return lines(
    `add element inet sandboxes ipv4 { ${ipv4Element(link)} }`,
    `add element inet sandboxes ipv6 { ${ipv6Element(link)} }`,
  );
}

/** For `nft`, on the node: undoes `admitText`; harmless if that was not applied. */
export function forgetText(link: Link): string {
  return lines(
    admitText(link),
    `delete element inet sandboxes ipv4 { ${ipv4Element(link)} }`,
    `delete element inet sandboxes ipv6 { ${ipv6Element(link)} }`,
  );
}

/**
 * For `sh`, on the node: enables forwarding. Interfaces that accept router advertisements keep doing so, which
 * forwarding would otherwise turn off.
 */
export const FORWARDING_SCRIPT = lines(
  'set -e',
  'cd /proc/sys/net',
  'for file in ipv6/conf/*/accept_ra; do [ "$(cat "$file")" != 1 ] || echo 2 >"$file"; done',
  'echo 1 >ipv4/ip_forward',
  '[ ! -e ipv6/conf/all/forwarding ] || echo 1 >ipv6/conf/all/forwarding',
);

/** An `sh` command with its input. */
function withInput(command: string, input: string): string {
  return `${command} <<'END'\n${input}END`;
}

function ipv4Element(link: Link): string {
  return `"${link.interface}" . ${link.sandbox.ipv4}`;
}

function ipv6Element(link: Link): string {
  return `"${link.interface}" . ${link.sandbox.ipv6}`;
}

function elements(all: string[]): string {
  return all.length === 0 ? '' : `elements = { ${all.join(', ')} };`;
}

function isIpv4(cidr: string): boolean {
  return !cidr.includes(':');
}

function lines(...all: string[]): string {
  return `${all.join('\n')}\n`;
}
