import { existsSync } from 'node:fs';
import { DIRECTIONS, type PerDirection } from '../directions.ts';
import { type Link, linkIndex, linkOf, SANDBOXES_MAX } from './addresses.ts';
import { ProgramError, runProgram } from './programs.ts';
import {
  admitText,
  FORWARDING_SCRIPT,
  forgetText,
  nodeLinkText,
  nodeRulesText,
  queueText,
  sandboxScript,
} from './texts.ts';

const PREFIX = 'sbx-';

/** The IP packets that passed in one direction since the namespace was created, as counted by the kernel. */
export interface KernelCount {
  bytes: number;
  packets: number;
}

/** The options of the namespaces. */
export interface NamespaceOptions {
  /**
   * `--allow-sandbox-cidr`: ranges that sandboxes may reach although they belong to the node or to another sandbox, or
   * are link-local.
   */
  allowed_cidrs: readonly string[];
  /** The named namespace that plays the node; null: the one of this process. */
  node_namespace: string | null;
}

/**
 * The network namespaces of this node's sandboxes, with their links, addresses and rules. The kernel holds all state:
 * a namespace is found by its name, `sbx-<sandbox_id>`, a link by its alias. Every method rejects with ProgramError.
 */
export class Namespaces {
  /** The folder in which `ip` keeps named namespaces. */
  static readonly FOLDER = '/run/netns';

  readonly #options: NamespaceOptions;
  readonly #links = new Map<string, Link>();
  readonly #taken = new Set<number>();
  #next_index = 0;

  constructor(options: NamespaceOptions) {
    this.#options = options;
  }

  /** The path of a sandbox's namespace. */
  static pathOf(sandbox_id: string): string {
    return `${Namespaces.FOLDER}/${PREFIX}${sandbox_id}`;
  }

  /** Sets the node's rules, and returns the sandboxes of this node that have a namespace. */
  async open(): Promise<string[]> {
    const names = await this.#names();
    const found: string[] = [];
    for (const link of await this.#readLinks()) {
      this.#taken.add(link.index);
      if (names.includes(link.alias)) this.#links.set(sandboxOf(link.alias), linkOf(link.index));
    }
    for (const name of names) {
      if (this.#links.has(sandboxOf(name)) || (await hasLoopbackAlone(name))) found.push(sandboxOf(name));
    }
    const links = [...this.#links.values()];
    await this.#onNode(['sh'], FORWARDING_SCRIPT);
    await this.#onNode(
      ['nft', '-f', '-'],
      nodeRulesText({ links, allowed_cidrs: this.#options.allowed_cidrs }),
    );
    return found;
  }

  /**
   * Creates a sandbox's namespace with the rules for `is_metered`; with `is_linked` false it has only its loopback
   * interface. A namespace left by an earlier attempt is replaced.
   */
  async create(sandbox_id: string, is_metered: PerDirection<boolean>, is_linked = true): Promise<void> {
    if (this.#links.has(sandbox_id) || existsSync(Namespaces.pathOf(sandbox_id)))
      await this.remove(sandbox_id);
    const name = `${PREFIX}${sandbox_id}`;
    if (!is_linked) {
      await runProgram(['ip', '-batch', '-'], `netns add ${name}\n`);
      await runProgram(['ip', '-n', name, 'link', 'set', 'lo', 'up']);
      return;
    }
    const link = await this.#addLink(name);
    this.#links.set(sandbox_id, link);
    await Promise.all([
      runProgram([...this.#inside(sandbox_id), 'sh'], sandboxScript({ link, is_metered })),
      this.#onNode(['nft', '-f', '-'], admitText(link)),
    ]);
  }

  /** Sends the packets of the metered directions, and no others, to their queues. */
  async setMetered(sandbox_id: string, is_metered: PerDirection<boolean>): Promise<void> {
    await this.#setQueues(this.#inside(sandbox_id), is_metered);
  }

  /** What the kernel let pass since the namespace was made; zeros where there is no link, null where it is gone. */
  async counts(sandbox_id: string): Promise<PerDirection<KernelCount> | null> {
    if (!existsSync(Namespaces.pathOf(sandbox_id))) return null;
    const counted = { egress: { bytes: 0, packets: 0 }, ingress: { bytes: 0, packets: 0 } };
    if (!this.#links.has(sandbox_id)) return counted;
    const command = [
      ...this.#inside(sandbox_id),
      'nft',
      '-j',
      'list',
      'counters',
      'table',
      'inet',
      'sandbox',
    ];
    const { nftables } = JSON.parse(await runProgram(command)) as { nftables: CounterLine[] };
    for (const { counter } of nftables) {
      const direction = DIRECTIONS.find((each) => each === counter?.name);
      if (counter && direction) counted[direction] = { bytes: counter.bytes, packets: counter.packets };
    }
    return counted;
  }

  /** Takes a sandbox's link down, which makes its counts final. Ignores parts that no longer exist. */
  async cut(sandbox_id: string): Promise<void> {
    const link = this.#links.get(sandbox_id);
    if (link) await this.#unlessGone(this.#onNode(['ip', 'link', 'set', link.interface, 'down']));
  }

  /** Removes a sandbox's namespace with everything in it. Ignores parts that no longer exist. */
  async remove(sandbox_id: string): Promise<void> {
    const link = this.#links.get(sandbox_id);
    const namespace = runProgram(['ip', 'netns', 'delete', `${PREFIX}${sandbox_id}`]);
    if (!link) return await this.#unlessGone(namespace);
    await Promise.all([
      this.#unlessGone(namespace),
      this.#unlessGone(this.#onNode(['ip', 'link', 'delete', link.interface])),
      this.#onNode(['nft', '-f', '-'], forgetText(link)),
    ]);
    this.#links.delete(sandbox_id);
    this.#taken.delete(link.index);
  }

  /** A sandbox's link; null if it has none. */
  linkOf(sandbox_id: string): Link | null {
    return this.#links.get(sandbox_id) ?? null;
  }

  async #setQueues(inside: string[], is_metered: PerDirection<boolean>): Promise<void> {
    const text = queueText(is_metered);
    await Promise.all([
      runProgram([...inside, 'iptables-restore'], text),
      runProgram([...inside, 'ip6tables-restore'], text),
    ]);
  }

  /** Creates a namespace and a link to it; skips numbers that another process on this node has taken. */
  async #addLink(namespace: string): Promise<Link> {
    for (;;) {
      const link = this.#takeLink();
      try {
        await this.#onNode(['ip', '-batch', '-'], nodeLinkText(namespace, link));
        return link;
      } catch (error) {
        await this.#unlessGone(runProgram(['ip', 'netns', 'delete', namespace]));
        if (error instanceof ProgramError && /File exists/.test(error.stderr)) continue;
        this.#taken.delete(link.index);
        throw error;
      }
    }
  }

  #takeLink(): Link {
    if (this.#taken.size >= SANDBOXES_MAX) throw new Error('all sandbox addresses of this node are in use');
    while (this.#taken.has(this.#next_index)) this.#next_index = (this.#next_index + 1) % SANDBOXES_MAX;
    const link = linkOf(this.#next_index);
    this.#taken.add(link.index);
    // Not the number used last: the kernel removes interfaces in the background.
    this.#next_index = (this.#next_index + 1) % SANDBOXES_MAX;
    return link;
  }

  async #names(): Promise<string[]> {
    const listed = (await runProgram(['ip', '-j', 'netns', 'list'])) || '[]';
    const all = JSON.parse(listed) as { name: string }[];
    return all.map(({ name }) => name).filter((name) => name.startsWith(PREFIX));
  }

  async #readLinks(): Promise<{ index: number; alias: string }[]> {
    const listed = (await this.#onNode(['ip', '-j', 'link', 'show', 'type', 'veth'])) || '[]';
    const all = JSON.parse(listed) as { ifname?: string; ifalias?: string }[];
    return all.flatMap(({ ifname = '', ifalias = '' }) => {
      const index = linkIndex(ifname);
      return index === null ? [] : [{ index, alias: ifalias }];
    });
  }

  #inside(sandbox_id: string): string[] {
    return ['nsenter', `--net=${Namespaces.pathOf(sandbox_id)}`];
  }

  #onNode(command: string[], stdin = ''): Promise<string> {
    const node = this.#options.node_namespace;
    return runProgram(
      node === null ? command : ['nsenter', `--net=${Namespaces.FOLDER}/${node}`, ...command],
      stdin,
    );
  }

  async #unlessGone(removal: Promise<string>): Promise<void> {
    try {
      await removal;
    } catch (error) {
      if (
        !(
          error instanceof ProgramError && /No such file|Cannot find device|No such device/.test(error.stderr)
        )
      )
        throw error;
    }
  }
}

/** Whether a namespace has no link, and so belongs to no node in particular. */
async function hasLoopbackAlone(name: string): Promise<boolean> {
  // A namespace that is being removed belongs to nobody.
  const listed = await runProgram(['ip', '-n', name, '-j', 'link']).catch(() => '');
  return listed !== '' && (JSON.parse(listed) as unknown[]).length === 1;
}

interface CounterLine {
  counter?: { name: string; bytes: number; packets: number };
}

function sandboxOf(name: string): string {
  return name.slice(PREFIX.length);
}
