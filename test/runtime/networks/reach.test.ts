import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { nodeGroup } from '../../../src/network/namespace/node-group.ts';
import { networkProblem } from '../../../src/network/problem.ts';
import { selfSigned } from '../../support/certificate.ts';
import { TestNode } from '../../support/network/test-node.ts';
import { NODE, OUTSIDE } from '../../support/network/topology.ts';
import { runSync } from '../../support/run-sync.ts';
import { MeteredNode } from '../../support/runtime/metered-node.ts';
import { scratchFolder } from '../../support/scratch.ts';

const problem = await networkProblem();
const why = problem === null ? '' : ` (skipped: ${problem})`;
/** The kernel limits how often it says so; otherwise the attempt takes too long. A closed port would be refused. */
const REFUSED_BY_NODE = /No route to host|Permission denied|\(124\)$/;

/** Sends a datagram of ICMP and waits for the answer. */
const PING = (host: string) => `perl -MSocket -e '
  socket(my $s, AF_INET, SOCK_DGRAM, 1) or die "socket: $!\\n";
  send($s, pack("CCnnn", 8, 0, 0, 0, 1) . "ping", 0, sockaddr_in(0, inet_aton("${host}"))) or die "send: $!\\n";
  vec(my $ready = "", fileno($s), 1) = 1;
  select($ready, undef, undef, 5) or die "no answer\\n";
  recv($s, my $answer, 100, 0);
  print unpack("C", $answer) == 0 ? "answered\\n" : "unreachable\\n"'`;

/** Tries to send as somebody else, with the option that lets a socket bind to any address. */
const FORGED = (type: string) => `timeout 3 perl -MSocket -e '
  socket(my $s, AF_INET, ${type}, 0) or die "socket: $!\\n";
  setsockopt($s, 0, 15, pack("i", 1)) or die "setsockopt: $!\\n";
  bind($s, sockaddr_in(0, inet_aton("10.251.0.9"))) or die "bind: $!\\n";
  connect($s, sockaddr_in(7000, inet_aton("${OUTSIDE.ipv4}"))) or die "connect: $!\\n";
  print "sent\\n"'`;

const SOCKET = (family: number, type: number, protocol: number) =>
  `perl -e 'socket(my $s, ${family}, ${type}, ${protocol}) or die "$!\\n"; print "opened\\n"'`;

/** Addresses outside that are not public, in every form; ISATAP is none of a range. */
const PRIVATE_IPV4 = ['10.20.0.2', '172.16.0.2', '192.168.0.2', '100.64.0.2', '198.18.0.2'];
const PRIVATE_IPV6 = ['fd12::2', 'fec0::2', '2001::2', '2001:db8::2', '64:ff9b::ac10:2', '2002:c0a8:2::2'];
const LEADING_TO_ALLOWED = ['64:ff9b::a14:2', '2002:a14:2::2'];

/** Sends to three addresses that it takes for its link's own, to three groups, and then to the outside. */
const ON_LINK = `perl -MSocket -e '
  for my $to (["9.9.9.1", 1], ["9.9.9.2", 1], ["9.9.9.3", 1], ["224.1.1.1", 0], ["224.1.1.2", 0], ["${OUTSIDE.ipv4}", 0]) {
    socket(my $s, AF_INET, SOCK_DGRAM, 0) or die "socket: $!\n";
    setsockopt($s, SOL_SOCKET, 25, "eth0") or die "bind: $!\n";
    setsockopt($s, SOL_SOCKET, SO_DONTROUTE, pack("i", $to->[1])) or die "setsockopt: $!\n";
    print send($s, ".", 0, sockaddr_in(9, inet_aton($to->[0]))) ? "sent\n" : "$!\n";
  }'`;

describe.skipIf(problem !== null)(`from inside a sandbox with a metered network${why}`, () => {
  it('nothing can be reached that must not be, and nothing changed', async () => {
    const node = await MeteredNode.open();
    const id = await node.create('sbx-1');
    const other = await node.create('sbx-2');
    const { topology } = node;
    for (const port of [5_432, 6_379, 7_000]) await topology.traffic(topology.node, 'listen', port).next();
    await node.sandboxes.ask(other, 'POST', '/processes', {
      shell:
        "perl -MSocket -e 'socket(S,AF_INET,SOCK_STREAM,0);bind(S,sockaddr_in(7000,INADDR_ANY));listen(S,9);sleep 60'",
    });
    const stranger = await TestNode.start(onTestFinished, null, topology);
    const strangers = await stranger.sandbox();
    await topology.traffic(strangers.namespace, 'listen', 7_000).next();

    const server = createServer((socket) => socket.end()).listen(0, '::');
    onTestFinished(() => void server.close());
    const abstract = `\0sandboxd-test-${topology.id}`;
    const local = createServer((socket) => socket.end()).listen(abstract);
    onTestFinished(() => void local.close());
    await Promise.all([once(server, 'listening'), once(local, 'listening')]);
    const { port } = server.address() as { port: number };

    const link = await node.linkOf(id);
    const others = (await node.linkOf(other)).sandbox;
    const of_strangers = await stranger.network.linkOf(strangers.id);
    const connections: [host: string, port: number, expected: RegExp][] = [
      [NODE.ipv4, 7_000, REFUSED_BY_NODE],
      [NODE.ipv6, 7_000, REFUSED_BY_NODE],
      [`::ffff:${NODE.ipv4}`, 7_000, REFUSED_BY_NODE],
      [NODE.ipv4, 5_432, REFUSED_BY_NODE],
      [NODE.ipv4, 6_379, REFUSED_BY_NODE],
      [NODE.ipv4, 53, REFUSED_BY_NODE],
      [link.node.ipv4, 7_000, REFUSED_BY_NODE],
      [link.node.ipv6, 7_000, REFUSED_BY_NODE],
      [others.ipv4, 7_000, REFUSED_BY_NODE],
      [others.ipv6, 7_000, REFUSED_BY_NODE],
      [String(of_strangers?.sandbox.ipv4), 7_000, REFUSED_BY_NODE],
      ['169.254.169.254', 80, REFUSED_BY_NODE],
      ['100.100.100.200', 80, REFUSED_BY_NODE],
      ['fd00:ec2::254', 80, REFUSED_BY_NODE],
      ['127.0.0.1', port, /Connection refused/],
      ['::1', port, /Connection refused/],
      ['0.0.0.0', port, /Connection refused/],
    ];
    const results = await Promise.all(
      connections.map(async ([host, to, expected]) => {
        const result = await node.connect(id, host, to);
        return expected.test(result) ? [] : [`${host} ${to}: ${result}`];
      }),
    );
    expect(results.flat()).toEqual([]);

    const changes: [command: string, expected: RegExp][] = [
      [FORGED('SOCK_STREAM'), /(connect|bind): |\(124\)$/],
      [FORGED('SOCK_DGRAM'), /(connect|bind): /],
      [SOCKET(17, 3, 768), /Operation not permitted|Address family/],
      [SOCKET(2, 3, 255), /Operation not permitted/],
      [
        `perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0); connect($s, pack("S", AF_UNIX) . "${abstract.replace('\0', '\\0')}") or die "$!\\n"; print "opened\\n"'`,
        /Connection refused/,
      ],
      ['ip address add 10.251.0.9/32 dev eth0', /not permitted/],
      ['ip link set eth0 down', /not permitted/],
      ['ip link add dummy0 type dummy', /not permitted/],
      ['ip route replace default dev lo', /not permitted/],
      ['iptables -t mangle -F', /denied|not permitted/],
      ['nft flush ruleset', /not permitted/],
      ['unshare --user --map-root-user --net true', /failed|not permitted|No space/],
      ['unshare --net true', /not permitted/],
      ['nsenter --net=/proc/1/ns/net true', /not permitted|denied/],
      ['echo 1 > /proc/sys/net/ipv4/ip_forward', /Read-only|denied|nonexistent/],
      ['echo nameserver 192.0.2.1 > /etc/resolv.conf', /Read-only|denied/],
      ['ls /run/netns', /No such file/],
    ];
    const outcomes = await Promise.all(
      changes.map(async ([command, expected]) => {
        const result = await node.shell(id, command);
        return expected.test(result) ? [] : [`${command}: ${result}`];
      }),
    );
    expect(outcomes.flat()).toEqual([]);
    expect(await node.connect(id, OUTSIDE.ipv4, 7_000)).toBe('connected');
  });

  it('private networks are closed, and a range opens them, but neither the node nor other sandboxes', async () => {
    const node = await MeteredNode.open({ allowed_cidrs: ['10.0.0.0/8', 'fd00::/8'] });
    const { topology } = node;
    const held = [...PRIVATE_IPV4, ...PRIVATE_IPV6, ...LEADING_TO_ALLOWED, 'fd00:ec2::254'];
    for (const address of held) runSync('ip', '-n', topology.outside, 'address', 'add', address, 'dev', 'lo');
    runSync('ip', '-n', topology.node, 'address', 'add', '10.30.0.1', 'dev', 'lo');
    await topology.traffic(topology.node, 'listen', 7_100).next();
    const [id, other] = [await node.create('sbx-1'), await node.create('sbx-2')];
    await node.sandboxes.ask(other, 'POST', '/processes', {
      shell:
        "perl -MSocket -e 'socket(S,AF_INET,SOCK_STREAM,0);bind(S,sockaddr_in(7000,INADDR_ANY));listen(S,9);sleep 60'",
    });
    const { sandbox, node: gateway } = await node.linkOf(other);
    const opened = ['10.20.0.2', 'fd12::2', '::ffff:10.20.0.2', ...LEADING_TO_ALLOWED];
    const closed = [
      ...PRIVATE_IPV4,
      ...PRIVATE_IPV6,
      '::ffff:172.16.0.2',
      'fd00:ec2::254',
      sandbox.ipv4,
      sandbox.ipv6,
    ]
      .filter((address) => !opened.includes(address))
      .map((address): [string, number] => [address, 7_000]);
    const on_node: [string, number][] = [NODE.ipv4, '10.30.0.1', gateway.ipv4, gateway.ipv6].map((host) => [
      host,
      7_100,
    ]);
    const results = await Promise.all([
      ...opened.map(async (host) => [host, await node.connect(id, host, 7_000)]),
      ...[...closed, ...on_node].map(async ([host, port]) => {
        const result = await node.connect(id, host, port);
        return [host, REFUSED_BY_NODE.test(result) ? 'refused' : result];
      }),
    ]);
    expect(Object.fromEntries(results)).toEqual({
      ...Object.fromEntries(opened.map((host) => [host, 'connected'])),
      ...Object.fromEntries([...closed, ...on_node].map(([host]) => [host, 'refused'])),
    });
  });

  it("no place is taken in the node's table of neighbours", async () => {
    const node = await MeteredNode.open();
    const id = await node.create('sbx-1');
    const sent = (await node.shell(id, ON_LINK)).split('\n');
    expect(sent).toEqual([...Array(5).fill('Operation not permitted'), 'sent']);
    const namespace = `${nodeGroup(node.sandboxes.data_dir).prefix}${id}`;
    const known = runSync('ip', '-n', namespace, 'neighbour', 'show', 'nud', 'all', 'dev', 'eth0');
    const asked = known.split('\n').filter((line) => line !== '' && !line.includes('PERMANENT'));
    // The kernel itself tells the routers of the link once which groups it is in, before there are rules.
    expect(asked.filter((line) => !line.startsWith('ff02::16 '))).toEqual([]);
  });

  it('what must work does: names, both families, ping, closed ports, and what is allowed', async () => {
    const node = await MeteredNode.open({ allowed_cidrs: [`${NODE.ipv4}/32`] });
    const { topology } = node;
    await topology.serveNames(topology.outside, OUTSIDE.ipv4);
    await topology.traffic(topology.node, 'listen', 7_100).next();
    const id = await node.create('sbx-1');
    expect(await node.shell(id, 'getent ahostsv4 consumer.test')).toContain(OUTSIDE.ipv4);
    expect(await node.shell(id, 'getent ahostsv6 long.consumer.test')).toContain(OUTSIDE.ipv6);
    expect(await node.shell(id, 'getent ahostsv4 sbx-1')).toContain('127.0.1.1');
    expect(await node.connect(id, 'consumer.test', 7_000)).toBe('connected');
    expect(await node.connect(id, OUTSIDE.ipv6, 7_000)).toBe('connected');
    expect(await node.connect(id, OUTSIDE.ipv4, 7_001)).toContain('Connection refused');
    expect(await node.shell(id, PING(OUTSIDE.ipv4))).toBe('answered');
    expect(await node.connect(id, NODE.ipv4, 7_100)).toBe('connected');
  });

  it('TLS works as on the host, by name over both families', async () => {
    const node = await MeteredNode.open();
    const { topology } = node;
    await topology.serveNames(topology.outside, OUTSIDE.ipv4);
    const { key, cert } = selfSigned('DNS:consumer.test');
    const folder = scratchFolder();
    const [key_file, cert_file] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    writeFileSync(key_file, key);
    writeFileSync(cert_file, cert);
    await topology.traffic(topology.outside, 'tls', 7_443, key_file, cert_file).next();
    const id = await node.create('sbx-1');
    await node.shell(id, `cat > /tmp/ca.pem <<'END'\n${cert}END\n`);
    const curl = 'curl -sS --max-time 20 --cacert /tmp/ca.pem';
    for (const family of ['-4', '-6']) {
      expect(await node.shell(id, `${curl} ${family} https://consumer.test:7443/`)).toBe('over TLS');
    }
    const unknown = 'curl -sS --max-time 20 https://consumer.test:7443/ 2>&1 || true';
    expect(await node.shell(id, unknown)).toMatch(/certificate/);
  });

  it("names are resolved by the node's own server where there is no other, and by nothing else there", async () => {
    const resolv_conf = 'nameserver 127.0.0.53\n';
    const node = await MeteredNode.open({ resolv_conf });
    const { topology } = node;
    await topology.serveNames(topology.node, '127.0.0.53');
    await topology.traffic(topology.node, 'listen', 7_100).next();
    const id = await node.create('sbx-1');
    expect(await node.shell(id, 'getent ahostsv4 consumer.test')).toContain(OUTSIDE.ipv4);
    expect(await node.shell(id, 'getent ahostsv4 long.consumer.test')).toContain(OUTSIDE.ipv4);
    const { node: gateway } = await node.linkOf(id);
    expect(await node.connect(id, gateway.ipv4, 7_100)).toMatch(REFUSED_BY_NODE);
    expect(await node.connect(id, gateway.ipv4, 53)).toBe('connected');
  });

  it("names are resolved by a server on the node's own address, and nothing else is reached there", async () => {
    const node = await MeteredNode.open({ resolv_conf: `nameserver ${NODE.ipv4}\n` });
    const { topology } = node;
    await topology.serveNames(topology.node, NODE.ipv4);
    await topology.traffic(topology.node, 'listen', 7_100).next();
    const id = await node.create('sbx-1');
    expect(await node.shell(id, 'getent ahostsv4 consumer.test')).toContain(OUTSIDE.ipv4);
    expect(await node.connect(id, NODE.ipv4, 7_100)).toMatch(REFUSED_BY_NODE);
  });
});
