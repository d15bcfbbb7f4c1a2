import { createHash } from 'node:crypto';
import { DNS_FLOW_MS, FLOW_IDLE_MS } from '../../contract/defaults.ts';
import type { Link } from '../namespace/addresses.ts';
import type { FlowBounds, FlowRate } from './flow-bounds.ts';

/**
 * The part of the node's rules that bounds the flows of sandboxes. A packet that is refused here leaves nothing in the
 * node's table: the kernel enters a flow once its first packet has passed all rules.
 */

/** The counters of refused packets that would have begun a flow, by the bound that refused them. */
export const FLOW_COUNTERS = ['sandbox_held', 'sandbox_rate', 'team_held', 'team_rate', 'node_rate'] as const;

/** One of `FLOW_COUNTERS`. */
export type FlowCounter = (typeof FLOW_COUNTERS)[number];

/** The set of the links whose teams hold more than their part of the node's table. */
export const CROWDING = 'crowding';

/** The bits of a flow's mark that say whose it is. The others stay free for the node's other software. */
export const MARK_MASK = 0xffff_0000;

const OURS = 0x8000_0000;

/** How long an unused rate of a team is remembered; far longer than it takes to be whole again. */
const RATE_KEPT = '10m';

/** The mark of a link's flows. */
export function linkMark({ index }: Link): number {
  return (OURS | (index << 16)) >>> 0;
}

/** The index of the link whose flows have this mark; null if it is not ours. */
export function markedLink(mark: number): number | null {
  return mark & OURS ? (mark >>> 16) & 0x7fff : null;
}

/** The number by which the kernel knows a team; every manager of the node finds the same. */
export function teamNumber(team_id: string): number {
  return createHash('sha256').update(team_id).digest().readUInt32BE() >>> 1 || 1;
}

/** How the rules refuse flows. */
export interface FlowRules {
  bounds: FlowBounds;
  /** Whether the kernel has time-outs for chosen flows. */
  has_timeouts: boolean;
}

/** The sets, maps and counters that the chains need, for `nft`. */
export function flowObjects(table: string): string[] {
  const kept = `flags dynamic, timeout; timeout ${RATE_KEPT};`;
  return [
    `add map ${table} teams { type ifname : mark; }`,
    `add map ${table} links { type ifname : mark; }`,
    `add set ${table} ${CROWDING} { type ifname; }`,
    `add set ${table} held { type ifname; size 65535; flags dynamic; }`,
    `add set ${table} rates { type ifname; size 65535; flags dynamic; }`,
    `add set ${table} team_rates { type mark; size 65535; ${kept} }`,
    `add set ${table} team_calm { type mark; size 65535; ${kept} }`,
    ...FLOW_COUNTERS.map((name) => `add counter ${table} ${name}`),
  ];
}

/** Rules for the first packet of a flow. `side`: which of its interfaces is the sandbox's link. */
export function flowRules({ bounds, has_timeouts }: FlowRules, side: 'iifname' | 'oifname', reject: string) {
  const over = ({ per_second, burst }: FlowRate) =>
    `limit rate over ${per_second}/second burst ${burst} packets`;
  // What goes beyond a rate is dropped, so that TCP tries again a little later.
  return [
    // Datagrams that nobody has answered yet are of the same flow.
    'ct status confirmed return',
    // The rate comes first: counting and answering cost more.
    `add @rates { ${side} ${over(bounds.sandbox_rate)} } counter name sandbox_rate drop`,
    `${side} @${CROWDING} counter name team_held ${reject}`,
    `add @held { ${side} ct count over ${bounds.sandbox_held} } counter name sandbox_held ${reject}`,
    ...(has_timeouts ? TIMEOUTS.map(({ name, match }) => `${match} ct timeout set "${name}"`) : []),
    // Whoever marks flows before this has a use for it.
    'ct mark != 0 return',
    `ct mark set ${side} map @teams`,
    `add @team_rates { ct mark ${over(bounds.team_rate)} } counter name team_rate drop`,
    `add @team_calm { ct mark ${over(bounds.team_calm)} } ${over(bounds.node_rate)} counter name node_rate drop`,
    `ct mark set ${side} map @links`,
  ];
}

const TIMEOUTS = (['ipv4', 'ipv6'] as const).flatMap((family) => [
  {
    name: `tcp_${family}`,
    match: `meta nfproto ${family}`,
    protocol: 'tcp',
    policy: `established: ${FLOW_IDLE_MS / 1_000}, syn_sent: 30, time_wait: 10, close: 5`,
    l3proto: family === 'ipv4' ? 'ip' : 'ip6',
  },
  {
    name: `dns_${family}`,
    match: `meta nfproto ${family} udp dport 53`,
    protocol: 'udp',
    // Every look-up is a flow of its own: with the kernel's half minute some thirty a second would fill a sandbox's bound.
    policy: `unreplied: ${DNS_FLOW_MS / 1_000}, replied: ${DNS_FLOW_MS / 1_000}`,
    l3proto: family === 'ipv4' ? 'ip' : 'ip6',
  },
]);

/** Time-outs of TCP and of look-ups of names, for `nft`; a kernel may lack them. The others are the kernel's own. */
export function flowTimeouts(table: string): string[] {
  return TIMEOUTS.map(
    ({ name, protocol, l3proto, policy }) =>
      `table ${table} { ct timeout ${name} { protocol ${protocol}; l3proto ${l3proto}; policy = { ${policy} } ; } ; }`,
  );
}

/** Lets a link's flows be known as its own and its team's. */
export function flowAdmission(table: string, link: Link, team: number | null): string[] {
  const name = link.interface;
  return [
    `add element ${table} links { "${name}" : ${linkMark(link)} }`,
    ...(team === null ? [] : [`add element ${table} teams { "${name}" : ${team} }`]),
  ];
}

/** Undoes `flowAdmission`; `has_team`: it fails unless the link has one. */
export function flowDismissal(table: string, link: Link, has_team: boolean): string[] {
  const name = `{ "${link.interface}" }`;
  return [
    ...flowAdmission(table, link, null),
    `delete element ${table} links ${name}`,
    ...(has_team ? [`delete element ${table} teams ${name}`] : []),
    ...[CROWDING, 'held', 'rates'].flatMap((set) => [
      `add element ${table} ${set} ${name}`,
      `delete element ${table} ${set} ${name}`,
    ]),
  ];
}

/** Refuses new flows of these links alone. */
export function crowdingText(table: string, names: readonly string[]): string[] {
  return [
    `flush set ${table} ${CROWDING}`,
    ...names.map((name) => `add element ${table} ${CROWDING} { "${name}" }`),
  ];
}
