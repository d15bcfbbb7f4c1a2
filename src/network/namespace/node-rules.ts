import {
  type FlowRules,
  flowAdmission,
  flowDismissal,
  flowObjects,
  flowRules,
  flowTimeouts,
} from '../flows/flow-rules.ts';
import { LINK_PATTERN, type Link, SANDBOX_CIDRS } from './addresses.ts';
import { allowedRanges, METADATA_MATCHES, NON_PUBLIC_MATCHES } from './closed-addresses.ts';
import type { NodeGroup } from './node-group.ts';
import { lines } from './texts.ts';

/** The input of `nft` on the node. */

/** The verdict that blocks a packet and notifies its sender. */
const REJECT = 'reject with icmpx type admin-prohibited';

const DNS = 'meta l4proto { tcp, udp } th dport 53';

/** What a group's sandboxes may reach besides the outside. */
export interface NodeRules {
  group: NodeGroup;
  links: readonly Link[];
  /** The numbers of the links' teams by the links' names, as far as they are known. */
  teams: ReadonlyMap<string, number>;
  flows: FlowRules;
  /** `--allow-sandbox-cidr`. */
  allowed_cidrs: readonly string[];
  /** Name servers, reachable on port 53 wherever they are. */
  name_servers: readonly string[];
  /** A name server on the node's own loopback interface, which answers at the node's end of each link; null: none. */
  local_name_server: string | null;
}

/**
 * Replaces the rules of a group's table in one step. Links that another manager of the group adds at the same moment
 * stay admitted, because the sets of links are only added to.
 */
export function nodeRulesText(rules: NodeRules): string {
  const { group, links, teams, flows, allowed_cidrs, name_servers, local_name_server } = rules;
  const table = `inet ${group.table}`;
  const from_sandbox = `iifgroup ${group.number}`;
  const to_sandbox = `oifgroup ${group.number}`;
  const chains: [name: string, hook: string | null, rules: string[]][] = [
    ['flows_from', null, flowRules(flows, 'iifname', REJECT)],
    ['flows_to', null, flowRules(flows, 'oifname', REJECT)],
    [
      'forged',
      'type filter hook prerouting priority -300',
      [
        `${from_sandbox} meta nfproto ipv4 iifname . ip saddr != @ipv4 drop`,
        `${from_sandbox} meta nfproto ipv6 iifname . ip6 saddr != @ipv6 drop`,
      ],
    ],
    [
      'local_dns',
      'type nat hook prerouting priority -100',
      local_name_server === null
        ? []
        : [
            `${from_sandbox} ip daddr ${SANDBOX_CIDRS.ipv4} fib daddr type local ${DNS} dnat ip to ${local_name_server}`,
          ],
    ],
    [
      'to_node',
      'type filter hook input priority 0',
      [
        `iifgroup != ${group.number} accept`,
        'ct state established,related accept',
        'icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept',
        'ct state new jump flows_from',
        ...(local_name_server === null ? [] : [`ct status dnat ip daddr ${local_name_server} ${DNS} accept`]),
        ...EXCEPTIONS,
        REJECT,
      ],
    ],
    [
      'through_node',
      'type filter hook forward priority 0',
      [
        `iifgroup != ${group.number} oifgroup != ${group.number} accept`,
        'ct state established,related accept',
        `${from_sandbox} ct state new jump flows_from`,
        ...EXCEPTIONS.map((exception) => `${from_sandbox} ${exception}`),
        // Published ports, for peers outside.
        `iifname != "${LINK_PATTERN}" ct status dnat ct state new jump flows_to`,
        `iifname != "${LINK_PATTERN}" ct status dnat accept`,
        `${to_sandbox} ${REJECT}`,
        ...METADATA_MATCHES.map((match) => `${match} ${REJECT}`),
        'ip daddr @allowed4 accept',
        'ip6 daddr @allowed6 accept',
        ...NON_PUBLIC_MATCHES.map((match) => `${match} ${REJECT}`),
      ],
    ],
    [
      'outside',
      'type nat hook postrouting priority 100',
      [
        `ip saddr ${SANDBOX_CIDRS.ipv4} oifname != "${LINK_PATTERN}" masquerade`,
        `ip6 saddr ${SANDBOX_CIDRS.ipv6} oifname != "${LINK_PATTERN}" masquerade`,
      ],
    ],
  ];
  const { named, wide } = allowedRanges(allowed_cidrs);
  const replaced = { named, allowed: wide, dns: name_servers };
  return lines(
    `add table ${table}${commentOf(group)}`,
    `add set ${table} ipv4 { type ifname . ipv4_addr; }`,
    `add set ${table} ipv6 { type ifname . ipv6_addr; }`,
    ...flowObjects(table),
    ...(flows.has_timeouts ? flowTimeouts(table) : []),
    ...links.flatMap((link) => [
      ...admission('add', group, link),
      ...flowAdmission(table, link, teams.get(link.interface) ?? null),
    ]),
    ...Object.entries(replaced).flatMap(([name, addresses]) => [
      `add set ${table} ${name}4 { type ipv4_addr; flags interval; auto-merge; }`,
      `add set ${table} ${name}6 { type ipv6_addr; flags interval; auto-merge; }`,
      `flush set ${table} ${name}4`,
      `flush set ${table} ${name}6`,
      ...addresses.map(
        (address) => `add element ${table} ${name}${address.includes(':') ? 6 : 4} { ${address} }`,
      ),
    ]),
    ...chains.flatMap(([name, hook, each]) => [
      `add chain ${table} ${name}${hook === null ? '' : ` { ${hook}; }`}`,
      `flush chain ${table} ${name}`,
      ...each.map((rule) => `add rule ${table} ${name} ${rule}`),
    ]),
  );
}

/** What the packet filter takes as a comment. */
const COMMENT = /^[A-Za-z0-9/._-]{1,128}$/;

/** The data directory, so that another manager can see that it is gone; nothing for an unusual path. */
function commentOf({ data_dir }: NodeGroup): string {
  return COMMENT.test(data_dir) ? ` { comment "${data_dir}"; }` : '';
}

const EXCEPTIONS = [
  'ip daddr @named4 accept',
  'ip6 daddr @named6 accept',
  `ip daddr @dns4 ${DNS} accept`,
  `ip6 daddr @dns6 ${DNS} accept`,
];

/** Lets a link's packets through, with its own addresses as their source, as flows of its team. */
export function admitText(group: NodeGroup, link: Link, team: number): string {
  return lines(...admission('add', group, link), ...flowAdmission(`inet ${group.table}`, link, team));
}

/** Undoes `admitText`. Harmless if that was not applied, except that `nft` refuses it with `has_team` then. */
export function forgetText(group: NodeGroup, link: Link, has_team: boolean): string {
  return lines(
    ...admission('add', group, link),
    ...admission('delete', group, link),
    ...flowDismissal(`inet ${group.table}`, link, has_team),
  );
}

/** Tries whether the kernel has time-outs for chosen flows. */
export function timeoutsText({ table }: NodeGroup): string {
  return lines(`add table inet ${table}`, ...flowTimeouts(`inet ${table}`));
}

function admission(
  verb: 'add' | 'delete',
  { table }: NodeGroup,
  { interface: name, sandbox }: Link,
): string[] {
  return [
    `${verb} element inet ${table} ipv4 { "${name}" . ${sandbox.ipv4} }`,
    `${verb} element inet ${table} ipv6 { "${name}" . ${sandbox.ipv6} }`,
  ];
}
