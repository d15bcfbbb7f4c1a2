import { existsSync, rmSync } from 'node:fs';
import { runTool, ToolError } from '../../base/run-tool.ts';
import type { PerDirection } from '../directions.ts';
import { type FlowBounds, flowBounds } from '../flows/flow-bounds.ts';
import { crowdingText, type FlowCounter, type FlowRules, teamNumber } from '../flows/flow-rules.ts';
import type { TrackedFlows } from '../flows/tracked-flows.ts';
import { type Link, linkIndex, linkNamed, linkOf } from './addresses.ts';
import type { KernelCount } from './kernel-counters.ts';
import { isNamespace, namesBeginning, namespacePath } from './namespace-file.ts';
import { type NodeGroup, TABLE_PREFIX } from './node-group.ts';
import { admitText, forgetText, nodeRulesText, timeoutsText } from './node-rules.ts';
import {
  FORWARDING_SCRIPT,
  lines,
  localDnsScript,
  nodeLinkText,
  queuePrograms,
  queueText,
  sandboxScript,
} from './texts.ts';

/** More links than this in a row are only taken if the node has no addresses left. */
const ATTEMPTS = 256;
/** The tables of all groups in a list of `nft`. */
const TABLES = new RegExp(`^table inet (${TABLE_PREFIX}\\S+)$`, 'gm');
/** The teams of links in a list of `nft`. */
const TEAMS = /"(vsbx\d+)" : (0x[0-9a-f]+)/g;

/** The options of the namespaces. */
export interface NamespaceOptions {
  group: NodeGroup;
  /** `--allow-sandbox-cidr`: ranges that sandboxes may reach although they are not public; see `allowedRanges`. */
  allowed_cidrs: readonly string[];
  /** The named namespace that plays the node; null: the one of this process. */
  node_namespace: string | null;
  /** Bounds of flows other than those of `flowBounds`. */
  flow_bounds?: Partial<FlowBounds>;
  /** The team of a sandbox, as far as it is known. */
  teamOf?: (sandbox_id: string) => string | null;
}

/** The name servers that sandboxes use, as in `NodeRules`. */
export interface NameServers {
  name_servers: readonly string[];
  local_name_server: string | null;
}

/**
 * The network namespaces of a group's sandboxes on this node, with their links, addresses and rules. The kernel holds
 * all state, so that every manager of the group sees the same: a namespace is found by its name, a link by its alias,
 * which is that name. Every method rejects with ToolError.
 */
export class Namespaces {
  readonly #options: NamespaceOptions;
  #name_servers: NameServers = { name_servers: [], local_name_server: null };
  #flow_rules: FlowRules | null = null;
  #flows: TrackedFlows | null = null;

  constructor(options: NamespaceOptions) {
    this.#options = options;
  }

  /** The path of a sandbox's namespace. */
  pathOf(sandbox_id: string): string {
    return namespacePath(this.#nameOf(sandbox_id));
  }

  /** Sets the node's rules. */
  async open(): Promise<void> {
    await this.#onNode(['sh'], FORWARDING_SCRIPT);
    await this.#setRules();
    await this.#forgetLostLinks();
    await this.#removeIdleTables();
  }

  /** Removes the node's rules, unless there are sandboxes. */
  async close(): Promise<void> {
    if ((await this.#readLinks()).size > 0) return;
    await this.#unlessGone(this.#onNode(['nft', 'delete', 'table', 'inet', this.#options.group.table]));
  }

  /** Sets the node's rules again if somebody else has removed them, or a link from them. Returns whether it has. */
  async repair(): Promise<boolean> {
    const listed = await this.#listTable().catch(() => null);
    const links = await this.#readLinks();
    const [admitted, teams] = [linksIn(listed ?? ''), teamsIn(listed ?? '')];
    const known = this.#teamsOf(links);
    const is_whole =
      listed !== null &&
      [...links.values()].every((link) => admitted.has(link.interface)) &&
      [...known.keys()].every((name) => teams.has(name));
    if (!is_whole) await this.#setRules();
    return !is_whole;
  }

  /** The table of flows that the node tracks. */
  async flows(): Promise<TrackedFlows> {
    // Loaded only where there are namespaces: it needs native code.
    const { TrackedFlows } = await import('../flows/tracked-flows.ts');
    const { node_namespace: node } = this.#options;
    this.#flows ??= new TrackedFlows(node === null ? null : namespacePath(node));
    return this.#flows;
  }

  /** The bounds of the flows of this node's sandboxes. */
  async flowBounds(): Promise<FlowBounds> {
    return (await this.#flowRules()).bounds;
  }

  /** The numbers of the teams of the group's links, by the links' names. */
  async teams(): Promise<Map<string, number>> {
    return teamsIn(await this.#listTable());
  }

  /** Lets these links, and no others, begin no new flows. */
  async refuseFlows(links: readonly string[]): Promise<void> {
    await this.#nft(lines(...crowdingText(`inet ${this.#options.group.table}`, links)));
  }

  /** The packets that the rules refused to begin flows with, by the bound. */
  async refusedFlows(): Promise<Record<FlowCounter, number>> {
    return (await this.flows()).refused(this.#options.group.table);
  }

  /** Lets sandboxes reach these name servers, and no others that only the rules would let through. */
  async useNameServers(name_servers: NameServers): Promise<void> {
    if (JSON.stringify(name_servers) === JSON.stringify(this.#name_servers)) return;
    this.#name_servers = name_servers;
    await this.#setRules();
  }

  /** The sandboxes that have a namespace, or the rest of one. */
  list(): string[] {
    const { prefix } = this.#options.group;
    return namesBeginning(prefix).map((name) => name.slice(prefix.length));
  }

  /** Creates a sandbox's namespace with the rules for `is_metered`. One left by an earlier attempt is replaced. */
  async create(sandbox_id: string, team_id: string, is_metered: PerDirection<boolean>): Promise<void> {
    await this.remove(sandbox_id);
    const link = await this.#addLink(this.#nameOf(sandbox_id));
    await Promise.all([
      runTool([...this.#inside(sandbox_id), 'sh'], { stdin: sandboxScript({ link, is_metered }) }),
      this.#admit(link, teamNumber(team_id)),
    ]);
  }

  /**
   * Gives a sandbox's namespace its name again, if that was lost with the mount namespace of the manager that created it;
   * `pid`: a process in it.
   */
  async restore(sandbox_id: string, pid: number): Promise<void> {
    const path = this.pathOf(sandbox_id);
    if (isNamespace(path)) return;
    rmSync(path, { force: true });
    await runTool(['ip', 'netns', 'attach', this.#nameOf(sandbox_id), String(pid)]);
  }

  /** Sends the packets of the metered directions, and no others, to their queues. */
  async setMetered(sandbox_id: string, is_metered: PerDirection<boolean>): Promise<void> {
    const text = queueText(is_metered);
    await Promise.all(
      queuePrograms().map((program) => runTool([...this.#inside(sandbox_id), program], { stdin: text })),
    );
  }

  /** What the kernel let pass since the namespace was made; null where there is none, or only a part of one. */
  async counts(sandbox_id: string): Promise<PerDirection<KernelCount> | null> {
    // Loaded only where there are namespaces: it needs native code.
    const { readCounters } = await import('./kernel-counters.ts');
    const path = this.pathOf(sandbox_id);
    return isNamespace(path) ? readCounters(path) : null;
  }

  /** Takes a sandbox's link down, which makes its counts final. Ignores parts that no longer exist. */
  async cut(sandbox_id: string): Promise<void> {
    const link = await this.linkOf(sandbox_id);
    if (link) await this.#unlessGone(this.#onNode(['ip', 'link', 'set', link.interface, 'down']));
  }

  /** Removes a sandbox's namespace with everything in it. Ignores parts that no longer exist. */
  async remove(sandbox_id: string): Promise<void> {
    if (!existsSync(this.pathOf(sandbox_id))) return;
    const link = await this.linkOf(sandbox_id);
    const has_flows = link !== null && ((await this.counts(sandbox_id))?.ingress.packets ?? 1) > 0;
    const namespace = runTool(['ip', 'netns', 'delete', this.#nameOf(sandbox_id)]);
    await Promise.all([
      this.#unlessGone(namespace),
      ...(link ? [this.#removeLink(link, has_flows), this.#forget(link)] : []),
    ]);
  }

  /** Removes a link. Without `has_flows` nobody has answered it, and what the node tracks of it ends in a minute. */
  async #removeLink(link: Link, has_flows: boolean): Promise<void> {
    await this.#unlessGone(this.#onNode(['ip', 'link', 'delete', link.interface]));
    // Connections would stay in the node's table for hours, and in the part of the team.
    if (has_flows) await (await this.flows()).forget(link);
  }

  /** A sandbox's link; null if it has none. */
  async linkOf(sandbox_id: string): Promise<Link | null> {
    return (await this.#readLinks()).get(sandbox_id) ?? null;
  }

  #nameOf(sandbox_id: string): string {
    return `${this.#options.group.prefix}${sandbox_id}`;
  }

  async #setRules(): Promise<void> {
    const { group, allowed_cidrs } = this.#options;
    const found = await this.#readLinks();
    const [links, teams] = [[...found.values()], this.#teamsOf(found)];
    const flows = await this.#flowRules();
    const text = nodeRulesText({ group, links, teams, flows, allowed_cidrs, ...this.#name_servers });
    try {
      await this.#nft(text);
    } catch (error) {
      if (!isTaken(error)) throw error;
      // A link had another team once, and a killed manager has left that.
      await this.#nft(lines(`flush map inet ${group.table} teams`));
      await this.#nft(text);
    }
  }

  async #flowRules(): Promise<FlowRules> {
    if (this.#flow_rules === null) {
      const { group, flow_bounds } = this.#options;
      const bounds = { ...flowBounds((await this.flows()).size_max), ...flow_bounds };
      const tried = this.#onNode(['nft', '-c', '-f', '-'], timeoutsText(group));
      const has_timeouts = await tried.then(
        () => true,
        () => false,
      );
      this.#flow_rules = { bounds, has_timeouts };
    }
    return this.#flow_rules;
  }

  /** The group's table as `nft` shows it. Rejects if there is none. */
  async #listTable(): Promise<string> {
    return await this.#onNode(['nft', 'list', 'table', 'inet', this.#options.group.table]);
  }

  /** The numbers of the teams of these sandboxes, by the names of their links, as far as they are known. */
  #teamsOf(links: ReadonlyMap<string, Link>): Map<string, number> {
    const { teamOf } = this.#options;
    return new Map(
      [...links].flatMap(([sandbox_id, { interface: name }]): [string, number][] => {
        const team = teamOf?.(sandbox_id) ?? null;
        return team === null ? [] : [[name, teamNumber(team)]];
      }),
    );
  }

  /** Removes links from the rules whose removal a killed manager did not finish. A link is there before its admission. */
  async #forgetLostLinks(): Promise<void> {
    const admitted = linksIn(await this.#listTable());
    for (const { interface: name } of (await this.#readLinks()).values()) admitted.delete(name);
    const lost = [...admitted].flatMap((name) => linkNamed(name) ?? []);
    const flows = await this.flows();
    for (const link of lost) {
      await this.#forget(link);
      await flows.forget(link);
    }
  }

  /** Removes a link from the rules, as far as it is there. */
  async #forget(link: Link): Promise<void> {
    const { group } = this.#options;
    try {
      await this.#nft(forgetText(group, link, true));
    } catch (error) {
      if (!isGone(error)) throw error;
      await this.#unlessGone(this.#nft(forgetText(group, link, false)));
    }
  }

  /**
   * Removes tables that killed managers left without sandboxes, and whose data directories are gone. Those of other living
   * managers whose data directory cannot be seen from here make theirs again.
   */
  async #removeIdleTables(): Promise<void> {
    const listed = await this.#onNode(['nft', 'list', 'tables', 'inet']);
    for (const [, table = ''] of listed.matchAll(TABLES)) {
      if (table === this.#options.group.table) continue;
      // Another manager may be faster.
      const content = await this.#onNode(['nft', 'list', 'table', 'inet', table]).catch(() => '');
      const data_dir = idleDataDir(content);
      if (data_dir !== null && !existsSync(data_dir))
        await this.#onNode(['nft', 'delete', 'table', 'inet', table]).catch(() => {});
    }
  }

  async #admit(link: Link, team: number): Promise<void> {
    const text = admitText(this.#options.group, link, team);
    try {
      await this.#nft(text);
    } catch (error) {
      // A killed manager has left the link's last team; or another one of the group has ended and taken the table with it.
      if (isTaken(error)) await this.#forget(link);
      else if (isGone(error)) await this.#setRules();
      else throw error;
      await this.#nft(text);
    }
    if (this.#name_servers.local_name_server) await this.#onNode(['sh'], localDnsScript(link));
  }

  /** Creates a namespace and a link to it; the kernel says which links are taken, by whomever. */
  async #addLink(namespace: string): Promise<Link> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const link = linkOf(linkIndex(namespace, attempt));
      try {
        await this.#onNode(['ip', '-batch', '-'], nodeLinkText(namespace, link, this.#options.group));
        return link;
      } catch (error) {
        await this.#unlessGone(runTool(['ip', 'netns', 'delete', namespace]));
        if (!isTaken(error)) throw error;
      }
    }
    throw new Error('all sandbox addresses of this node are in use');
  }

  /** The group's links by their sandboxes. */
  async #readLinks(): Promise<Map<string, Link>> {
    const { number, prefix } = this.#options.group;
    const listed = (await this.#onNode(['ip', '-j', 'link', 'show', 'group', String(number)])) || '[]';
    const all = JSON.parse(listed) as { ifname?: string; ifalias?: string }[];
    return new Map(
      all.flatMap(({ ifname = '', ifalias = '' }): [string, Link][] => {
        const link = linkNamed(ifname);
        return link && ifalias.startsWith(prefix) ? [[ifalias.slice(prefix.length), link]] : [];
      }),
    );
  }

  #inside(sandbox_id: string): string[] {
    return ['nsenter', `--net=${this.pathOf(sandbox_id)}`];
  }

  #nft(text: string): Promise<string> {
    return this.#onNode(['nft', '-f', '-'], text);
  }

  #onNode(command: string[], stdin?: string): Promise<string> {
    const node = this.#options.node_namespace;
    return runTool(node === null ? command : ['nsenter', `--net=${namespacePath(node)}`, ...command], {
      stdin,
    });
  }

  async #unlessGone(removal: Promise<string>): Promise<void> {
    try {
      await removal;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ToolError && /No such file|Cannot find device|No such device/.test(error.stderr);
}

function isTaken(error: unknown): boolean {
  return error instanceof ToolError && /File exists/.test(error.stderr);
}

/** The names of the links in a table as `nft` shows it. */
function linksIn(table: string): Set<string> {
  return new Set([...table.matchAll(/"(vsbx\d+)"/g)].map(([, name = '']) => name));
}

/** The numbers of the links' teams in a table as `nft` shows it. */
function teamsIn(table: string): Map<string, number> {
  const [, teams = ''] = /^\tmap teams \{([\s\S]*?)\n\t\}/m.exec(table) ?? [];
  return new Map([...teams.matchAll(TEAMS)].map(([, name = '', team]) => [name, Number(team)]));
}

/** The data directory in a table as `nft` shows it, if it admits no link; else null. */
function idleDataDir(table: string): string | null {
  return /"vsbx\d/.test(table) ? null : (/comment "([^"]+)"/.exec(table)?.[1] ?? null);
}
