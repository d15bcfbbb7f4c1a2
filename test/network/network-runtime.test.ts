import { spawnSync } from 'node:child_process';
import { closeSync, readdirSync, readlinkSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { flowBounds } from '../../src/network/flows/flow-bounds.ts';
import { linkIndex, linkOf } from '../../src/network/namespace/addresses.ts';
import { nodeGroup } from '../../src/network/namespace/node-group.ts';
import { admitText, nodeRulesText } from '../../src/network/namespace/node-rules.ts';
import { networkProblem } from '../../src/network/problem.ts';
import { until } from '../faults/support/until.ts';
import { bandwidth, TestNode, teamLimits, UNLIMITED, usageIn } from '../support/network/test-node.ts';
import { NODE, OUTSIDE } from '../support/network/topology.ts';
import { runSync } from '../support/run-sync.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;
const MB = 1_000_000;

/** 100 calls, of each of which the kernel makes 60 datagrams of one byte (`UDP_SEGMENT`). */
const SEND_SPLIT = `
import socket, struct, sys
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(100):
  out.sendmsg([b'x' * 60], [(17, 103, struct.pack('H', 1))], 0, (sys.argv[1], 9))
`;

interface Put {
  bytes: number;
  sha256: string;
  sent_sha256: string;
}

describe.skipIf(problem !== null)(`a metered sandbox${why}`, () => {
  it('sends and receives unharmed over IPv4 and IPv6, and waits rather than loses', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox(bandwidth(20 * MB, MB), teamLimits(20 * MB));
    for (const host of [OUTSIDE.ipv4, OUTSIDE.ipv6]) {
      const put = sandbox.traffic('put', host, 4 * MB);
      await put.next();
      const { bytes, sha256, sent_sha256 } = await put.next<Put>();
      expect([bytes, sha256]).toEqual([4 * MB, sent_sha256]);
      const get = sandbox.traffic('get', host, 4 * MB);
      await get.next();
      expect(await get.next()).toMatchObject({ received: 4 * MB, sha256 });
    }
    const { egress, ingress } = await sandbox.usage();
    for (const { passed_bytes, dropped_packets, waited_ms } of [egress, ingress]) {
      expect(passed_bytes).toBeGreaterThan(8 * MB);
      expect(dropped_packets).toBe(0);
      expect(waited_ms).toBeGreaterThan(0);
    }
    // What was lent and not returned covers what passed.
    expect(node.authority.lent.egress).toBeGreaterThanOrEqual(egress.passed_bytes);
    expect(node.authority.lent.ingress).toBeGreaterThanOrEqual(ingress.passed_bytes);
  });

  it('passes no more than its burst and its rate over time', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox(bandwidth(10 * MB, MB));
    const began = performance.now();
    const flood = sandbox.traffic('flood', OUTSIDE.ipv4, 'out', 8, 1_500);
    await flood.next();
    await flood.next();
    const { egress } = await sandbox.usage();
    const seconds = (performance.now() - began) / 1_000;
    expect(egress.passed_bytes).toBeLessThanOrEqual(MB + 10 * MB * seconds);
    expect(egress.passed_bytes).toBeGreaterThan(5 * MB);
  });

  it('passes or drops every datagram, and counts it to the byte', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox(bandwidth(2 * MB, 100_000));
    const sender = sandbox.traffic('datagrams', OUTSIDE.ipv4, 5_000, 1_200, 20);
    await sender.next();
    const { egress } = await sandbox.usage();
    expect(egress.dropped_packets).toBeGreaterThan(0);
    const echoes = sandbox.traffic('probe', OUTSIDE.ipv4, 1);
    expect(await echoes.next()).toEqual({ outcome: 'ECONNREFUSED' });
    const length = 1_200 + 28;
    expect(egress.dropped_bytes).toBe(egress.dropped_packets * length);
    const datagrams = (egress.passed_bytes - (egress.passed_bytes % length)) / length;
    expect(datagrams + egress.dropped_packets + overflowOf(sandbox.namespace)).toBe(5_000);
  });

  it.skipIf(spawnSync('python3', ['-V']).error)(
    'counts each datagram of those that a program sends with one call (skipped without python3)',
    async () => {
      const node = await TestNode.start(onTestFinished);
      const sandbox = await node.sandbox(bandwidth(20 * MB, MB));
      runSync('ip', 'netns', 'exec', sandbox.namespace, 'python3', '-c', SEND_SPLIT, OUTSIDE.ipv4);
      const { egress } = await sandbox.usage();
      expect(egress.dropped_packets).toBe(0);
      const bytes = 100 * 60 * (20 + 8 + 1);
      expect(egress.passed_bytes).toBeGreaterThanOrEqual(bytes);
      // The kernel's own: a few reports of the multicast groups that it listens to.
      expect(egress.passed_bytes).toBeLessThan(bytes + 1_000);
    },
  );

  it('lets nothing pass at a limit of 0, and goes on when it is raised', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox(bandwidth(0), teamLimits(0));
    const put = sandbox.traffic('put', OUTSIDE.ipv4, MB);
    await sandbox.traffic('datagrams', OUTSIDE.ipv4, 100, 100, 10).next();
    const { egress, ingress } = await sandbox.usage();
    expect([egress.passed_bytes, ingress.passed_bytes]).toEqual([0, 0]);
    expect(egress.dropped_packets).toBe(100);
    await node.network.setTeamLimits('team', teamLimits(50 * MB));
    await put.next();
    expect(await put.next()).toMatchObject({ bytes: MB });
  });

  it('is held while the authority is out of reach, and goes on without a loss', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox(bandwidth(0), teamLimits(10 * MB));
    const put = sandbox.traffic('put', OUTSIDE.ipv4, 10 * MB);
    await put.next();
    node.authority.is_reachable = false;
    const asked = node.authority.calls;
    await until('it was asked in vain several times', () => node.authority.calls > asked + 5);
    const { egress } = await sandbox.usage();
    expect(egress.passed_bytes).toBeLessThanOrEqual(node.authority.lent.egress);
    expect(egress.passed_bytes).toBeLessThan(10 * MB);
    node.authority.is_reachable = true;
    const { bytes, sha256, sent_sha256 } = await put.next<Put>();
    expect([bytes, sha256]).toEqual([10 * MB, sent_sha256]);
  });

  it('has no queue without a limit, is counted all the same, and gets one on an open connection', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox();
    const rules = () => runSync('ip', 'netns', 'exec', sandbox.namespace, 'iptables-save', '-t', 'mangle');
    expect(rules()).not.toContain('NFQUEUE');
    const flood = sandbox.traffic('flood', OUTSIDE.ipv4, 'out', 2, 1_500);
    await flood.next();
    await node.network.setBandwidth(sandbox.id, bandwidth(MB, 65_536));
    expect(rules()).toContain('NFQUEUE');
    const before = (await sandbox.usage()).egress.passed_bytes;
    const began = performance.now();
    await flood.next();
    const passed = (await sandbox.usage()).egress.passed_bytes - before;
    expect(passed).toBeLessThanOrEqual(65_536 + MB * ((performance.now() - began) / 1_000 + 1));
    // What is held at that moment passes: the connections go on.
    const held = sandbox.traffic('put', OUTSIDE.ipv4, 2 * MB);
    await held.next();
    await node.network.setBandwidth(sandbox.id, bandwidth(0));
    expect(rules()).not.toContain('NFQUEUE');
    expect(await held.next()).toMatchObject({ bytes: 2 * MB });
    const put = sandbox.traffic('put', OUTSIDE.ipv6, MB);
    await put.next();
    expect(await put.next()).toMatchObject({ bytes: MB });
  });

  it('keeps its connections when the meter fails, also where another namespace is broken', async () => {
    const node = await TestNode.start(onTestFinished);
    const broken = await node.sandbox(bandwidth(MB));
    const sandbox = await node.sandbox(bandwidth(4 * MB, 65_536));
    runSync('ip', 'netns', 'delete', broken.namespace);
    const put = sandbox.traffic('put', OUTSIDE.ipv4, 4 * MB);
    await put.next();
    // The thread finds its socket gone, as after any error of the kernel.
    closeSync(queueOf(sandbox.namespace));
    await until('the failure is seen', () => node.network.state().reason !== null);
    await until('another meter runs', () => node.network.state().reason === null);
    const { bytes, sha256, sent_sha256 } = await put.next<Put>();
    expect([bytes, sha256]).toEqual([4 * MB, sent_sha256]);
  });

  it('is taken over by the next runtime with its counts and connections', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox(bandwidth(4 * MB, 65_536));
    const put = sandbox.traffic('put', OUTSIDE.ipv4, 4 * MB);
    await put.next();
    await node.network.stop();
    const next = node.runtime();
    await next.start();
    expect(next.list()).toEqual([sandbox.id]);
    node.network = next;
    await next.takeOver({
      sandbox_id: sandbox.id,
      team_id: 'team',
      bandwidth: bandwidth(4 * MB, 65_536),
      team_limits: UNLIMITED,
    });
    expect(next.attached).toEqual([sandbox.id]);
    const { bytes, sha256, sent_sha256 } = await put.next<Put>();
    expect([bytes, sha256]).toEqual([4 * MB, sent_sha256]);
    await next.cut(sandbox.id);
    const final = await usageIn(next, sandbox.id);
    expect(final?.egress.passed_bytes).toBeGreaterThan(4 * MB);
    await next.cut(sandbox.id);
    expect(await usageIn(next, sandbox.id)).toEqual(final);
    await next.detach(sandbox.id);
    expect(await usageIn(next, sandbox.id)).toBeNull();
  });

  it('reaches neither the node, nor another sandbox, nor link-local addresses, and forges no source', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox();
    const other = await node.sandbox(bandwidth(10 * MB));
    await node.topology.serve(node.topology.node);
    await node.topology.serve(other.namespace);
    const own = (await node.network.linkOf(sandbox.id))?.sandbox;
    const others = (await node.network.linkOf(other.id))?.sandbox;
    const gateway = runSync('ip', '-n', sandbox.namespace, 'route', 'show', 'default').split(
      ' ',
    )[2] as string;
    for (const host of [NODE.ipv4, NODE.ipv6, gateway, others?.ipv4, others?.ipv6, '169.254.169.254']) {
      expect(`${host}: ${await sandbox.probe(String(host), 7_000)}`).toMatch(/: (EHOSTUNREACH|EACCES)$/);
    }
    // A service of the sandbox's own is its own; a closed port outside is refused, as ever.
    expect(await sandbox.probe(String(own?.ipv4), 7_000)).toBe('ECONNREFUSED');
    expect(await sandbox.probe('127.0.0.1', 7_000)).toBe('ECONNREFUSED');
    expect(await sandbox.probe(OUTSIDE.ipv4, 7_001)).toBe('ECONNREFUSED');
    expect(await sandbox.probe(OUTSIDE.ipv6, 7_000)).toBe('connected');
    runSync('ip', '-n', sandbox.namespace, 'address', 'replace', '10.251.77.7/32', 'dev', 'eth0');
    runSync(
      ...['ip', '-n', sandbox.namespace, 'route', 'replace', 'default', 'via', gateway, 'dev', 'eth0'],
      ...['src', '10.251.77.7'],
    );
    expect(await sandbox.probe(OUTSIDE.ipv4, 7_000)).toBe('timeout');
  });

  it('reaches what is allowed', async () => {
    const node = await TestNode.start(onTestFinished);
    await node.network.stop();
    node.network = node.runtime([`${NODE.ipv4}/32`, `${NODE.ipv6}/128`]);
    await node.network.start();
    await node.topology.serve(node.topology.node);
    const sandbox = await node.sandbox();
    expect(await sandbox.probe(NODE.ipv4, 7_000)).toBe('connected');
    expect(await sandbox.probe(NODE.ipv6, 7_000)).toBe('connected');
  });

  it('knows its neighbour for good, and is known', async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox(bandwidth(MB), teamLimits(0));
    const inside = runSync('ip', '-n', sandbox.namespace, 'neighbour').trim().split('\n');
    const outside = runSync(
      'ip',
      '-n',
      node.topology.node,
      'neighbour',
      'show',
      'dev',
      (await node.network.linkOf(sandbox.id))?.interface ?? '',
    )
      .trim()
      .split('\n');
    for (const known of [inside, outside]) {
      expect(known).toHaveLength(2);
      for (const line of known) expect(line).toMatch(/ PERMANENT *$/);
    }
  });

  it('gets another link where another manager of the node has taken the next one', async () => {
    const node = await TestNode.start(onTestFinished);
    const [first, next] = [0, 1].map((attempt) =>
      linkOf(linkIndex(`${node.group.prefix}${node.topology.id}-0`, attempt)),
    );
    const taken = ['link', 'add', first?.interface ?? '', 'type', 'veth', 'peer', 'name', 'taken'];
    runSync('ip', '-n', node.topology.node, ...taken);
    const sandbox = await node.sandbox();
    expect(await node.network.linkOf(sandbox.id)).toEqual(next);
    expect(await sandbox.probe(OUTSIDE.ipv4, 7_000)).toBe('connected');
  });

  it("gets the node's rules again where somebody flushes them, and leaves none when all have gone", async () => {
    const node = await TestNode.start(onTestFinished);
    const sandbox = await node.sandbox();
    const nft = (...args: string[]) => runSync('ip', 'netns', 'exec', node.topology.node, 'nft', ...args);
    const rules = nft('list', 'ruleset');
    nft('flush', 'ruleset');
    await node.network.repair();
    expect(nft('list', 'ruleset')).toBe(rules);
    nft('flush', 'ruleset');
    const other = await node.sandbox();
    expect(await other.probe(OUTSIDE.ipv4, 7_000)).toBe('connected');
    // Another manager of the same data directory that ends leaves the rules to those who need them.
    const second = node.runtime();
    await second.start();
    await second.stop();
    expect(await sandbox.probe(OUTSIDE.ipv4, 7_000)).toBe('connected');
    for (const { id } of [sandbox, other]) await node.network.detach(id);
    await node.network.stop();
    expect(nft('list', 'ruleset')).toBe('');
  });

  it('removes the rules of a killed manager whose data directory is gone, and of no other', async () => {
    const node = await TestNode.start(onTestFinished);
    const nft = (...args: string[]) => runSync('ip', 'netns', 'exec', node.topology.node, 'nft', ...args);
    const flows = { bounds: flowBounds(1_000), has_timeouts: false };
    const link = { name_servers: [], local_name_server: null, allowed_cidrs: [], teams: new Map(), flows };
    const groups = ['/gone', '/gone/with-a-sandbox', '/tmp'].map(nodeGroup);
    for (const group of groups) {
      const links = group.data_dir.endsWith('sandbox') ? [linkOf(1)] : [];
      nft(nodeRulesText({ group, links, ...link }));
    }
    // A link that the rules of this group admit, and that is gone.
    nft(admitText(node.group, linkOf(7), 1));
    const next = node.runtime();
    await next.start();
    expect(nft('list', 'table', 'inet', node.group.table)).not.toContain('"vsbx7"');
    await next.stop();
    const left = nft('list', 'tables');
    expect(groups.map(({ table }) => left.includes(table))).toEqual([false, true, true]);
  });

  it('leaves nothing behind, however often it is removed', async () => {
    const node = await TestNode.start(onTestFinished);
    const state = () => [
      runSync('ip', 'netns').match(new RegExp(`^${node.group.prefix}.*`, 'gm')),
      runSync('ip', '-n', node.topology.node, '-o', 'link', 'show', 'type', 'veth').split('\n').length,
      runSync('ip', 'netns', 'exec', node.topology.node, 'nft', 'list', 'ruleset'),
    ];
    const before = state();
    const open = sockets().length;
    for (let i = 0; i < 3; i++) {
      const sandbox = await node.sandbox(bandwidth(MB));
      expect(state()).not.toEqual(before);
      await node.network.detach(sandbox.id);
      await node.network.detach(sandbox.id);
    }
    expect(state()).toEqual(before);
    await until('its sockets are closed', () => sockets().length <= open);
  });
});

/** How many packets the kernel dropped because its queue was full: on a busy machine the meter may come too late. */
function overflowOf(namespace: string): number {
  const queues = runSync('ip', 'netns', 'exec', namespace, 'cat', '/proc/net/netfilter/nfnetlink_queue');
  const egress = queues.split('\n').filter((line) => /^ *[13] /.test(line));
  return egress.reduce((sum, line) => {
    const [, , , , , queue_dropped, user_dropped] = line.trim().split(/ +/).map(Number);
    return sum + Number(queue_dropped) + Number(user_dropped);
  }, 0);
}

/** The file descriptor of this process that is the packet queue of a namespace. */
function queueOf(namespace: string): number {
  const netlink = runSync('ip', 'netns', 'exec', namespace, 'cat', '/proc/net/netlink');
  const inodes = new Set([...netlink.matchAll(/(\d+) *$/gm)].map(([, inode]) => `socket:[${inode}]`));
  const found = sockets().find(({ link }) => inodes.has(link));
  if (!found) throw new Error('no queue is open');
  return found.fd;
}

/** The file descriptors of this process that are sockets. */
function sockets(): { fd: number; link: string }[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const link = readlinkSync(`/proc/self/fd/${fd}`);
      return link.startsWith('socket:') ? [{ fd: Number(fd), link }] : [];
    } catch {
      return [];
    }
  });
}
