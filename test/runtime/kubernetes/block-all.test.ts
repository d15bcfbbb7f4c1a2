import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../src/contract/templates.ts';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import { connectDaemon } from '../../../src/runtime/kubernetes/keeper-client.ts';
import { Keepers } from '../../../src/runtime/kubernetes/keepers.ts';
import { KubernetesRuntime } from '../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { Pods } from '../../../src/runtime/kubernetes/pods.ts';
import { Records } from '../../../src/runtime/kubernetes/records.ts';
import { startConsumer } from '../../support/consumer.ts';
import { eventually } from '../../support/eventually.ts';
import {
  HOST_ADDRESS,
  IMAGE,
  NAMESPACE,
  TestCluster,
  whyNoLongTests,
} from '../../support/kubernetes/cluster.ts';
import { PolicyRules } from '../../support/kubernetes/policy-rules.ts';
import { ask, output, SMALL } from '../../support/runtime/conformance.ts';
import { SECRET, spec, webhook } from '../../support/runtime/sandboxes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const why_not = whyNoLongTests();
if (why_not !== null) console.log(`skipped, tests of block-all on a cluster: ${why_not}`);

const POOL = { size: 1, memory_mib: 256, cpu_millis: 100, disk_mib: 256 };
const TEMPLATE: SandboxTemplate = {
  ...{ image: IMAGE, image_pull_secret: null, runtime_class: null, storage_class: null },
  // Root in its container, as the most that an attacker can be.
  ...{ user: 0, work_dir: '/workspace', user_namespace: true, persistent_root: false, ephemeral_mib: 256 },
  ...{ resources: {}, pool: null },
};
const TEMPLATES = new Map<string, SandboxTemplate>([
  ['default', TEMPLATE],
  ['whole', { ...TEMPLATE, persistent_root: true }],
  ['pooled', { ...TEMPLATE, pool: POOL }],
]);
/** A public address, as far as the policies know. */
const PUBLIC = '203.0.113.7';
const BLOCKED = { ...SMALL, network_mode: 'block-all' } as const;

/** Whether a TCP port answers, in a shell. */
const reach = (host: string, port: number) =>
  `timeout 3 bash -c ': < /dev/tcp/${host}/${port}' 2>/dev/null && echo reached || echo blocked`;

describe.skipIf(why_not !== null)(
  'block-all on a cluster, with the policies of the manifests enforced',
  () => {
    let cluster: TestCluster;
    let runtime: KubernetesRuntime;
    let rules: PolicyRules;

    const runtimeOf = async () => {
      const options = {
        ...{ kubeconfig: cluster.kubeconfigOf('sandbox-manager'), namespace: null, product_image: IMAGE },
        injection: 'auto' as const,
        ...{ templates: TEMPLATES, webhook_cidrs: [`${HOST_ADDRESS}/32`] },
      };
      const made = new KubernetesRuntime(options, systemClock, createLog('silent'));
      await made.start();
      return made;
    };
    const policyText = (name: string) =>
      cluster.kubectl('-n', NAMESPACE, 'get', 'networkpolicy', name, '-o', 'yaml');

    beforeAll(async () => {
      cluster = await TestCluster.start();
      cluster.kubectl(
        'label',
        '--overwrite',
        `ns/${NAMESPACE}`,
        'pod-security.kubernetes.io/enforce=privileged',
      );
      cluster.script('in', 'node1', 'ip', 'address', 'add', `${PUBLIC}/32`, 'dev', 'lo');
      runtime = await runtimeOf();
      rules = new PolicyRules(cluster, HOST_ADDRESS);
    });

    afterEach(async () => {
      for (const sandbox_id of await runtime.list()) await runtime.remove(sandbox_id);
    });

    afterAll(async () => {
      await runtime?.stop();
      await cluster?.stop();
    });

    it('nothing leaves it, and its webhooks do, through any manager', async () => {
      const consumer = await startConsumer(HOST_ADDRESS);
      const { hostname, port } = new URL(consumer.url);
      const { pod_name } = await runtime.create(spec('closed', { ...webhook(consumer.url), ...BLOCKED }));
      await consumer.arrival('sandbox.ready');
      const open = await runtime.create(spec('open', { ...SMALL, template_id: 'pooled', disk_mib: 256 }));
      const address = (name: string) =>
        cluster.kubectl('-n', NAMESPACE, 'get', 'pod', name, '-o=jsonpath={.status.podIP}');
      cluster.script(
        ...['in', 'node1', 'sh', '-c'],
        `setsid python3 -c 'import socket, time; listening = socket.create_server(("${PUBLIC}", 8080)); time.sleep(3600)' >/dev/null 2>&1 &`,
      );
      // Without rules everything can be reached from it: what follows is theirs.
      const places: [string, number][] = [
        [PUBLIC, 8080],
        [hostname, Number(port)],
        [HOST_ADDRESS, 6443],
        [address(open.pod_name), 49_984],
      ];
      const seenFrom = async (id: string) => {
        const tried = places.map(([host, at]) => reach(host, at)).join('; ');
        return (await output(runtime, id, tried)).split('\n');
      };
      await eventually(async () => {
        expect(await seenFrom('closed')).toEqual(['reached', 'reached', 'reached', 'reached']);
      }, 60_000);
      for (const name of [pod_name, open.pod_name]) rules.enforce(name);
      expect(await seenFrom('closed')).toEqual(['blocked', 'blocked', 'blocked', 'blocked']);
      // The other one reaches public addresses, and what is its own Pod's.
      expect(await seenFrom('open')).toEqual(['reached', 'blocked', 'blocked', 'reached']);

      // The manager reaches it on, and so do its webhooks, those of another manager too.
      const publish = (step: number) =>
        ask(runtime, 'closed', 'POST', '/webhook/publish', { payload: { step } });
      await publish(1);
      await consumer.arrival('agent.event', 1);
      const other = await runtimeOf();
      onTestFinished(() => other.stop());
      expect(await other.liveness('closed')).toBe('alive');
      await runtime.stop();
      await ask(other, 'closed', 'POST', '/webhook/publish', { payload: { step: 2 } });
      await consumer.arrival('agent.event', 2);
      // After a restart of all of them what waited is sent.
      await other.stop();
      runtime = await runtimeOf();
      await publish(3);
      expect(await runtime.liveness('closed')).toBe('alive');
      await consumer.arrival('agent.event', 3);
      expect(consumer.unsigned(SECRET)).toEqual([]);
    });

    it('its processes cannot use the way of its webhooks, root included', async () => {
      const consumer = await startConsumer(HOST_ADDRESS);
      const { pod_name } = await runtime.create(spec('closed', { ...webhook(consumer.url), ...BLOCKED }));
      const victim = await runtime.create(spec('victim', { ...webhook(consumer.url), ...BLOCKED }));
      await consumer.arrival('sandbox.ready', 2);
      for (const name of [pod_name, victim.pod_name]) rules.enforce(name);
      // No socket, no descriptor and no memory of the daemon's.
      const daemon =
        'daemon=$(cd /proc; for pid in [0-9]*; do if grep -q sandboxd.cj[s] $pid/cmdline; then echo $pid; fi; done 2>/dev/null | tail -1)';
      const seen = await output(
        runtime,
        'closed',
        `${daemon}; test -n "$daemon" && id -u; find / -xdev -type s 2>/dev/null; ls -A /run/sandboxd; for fd in /proc/$daemon/fd/*; do readlink $fd || (: < $fd) && echo $fd; done 2>/dev/null; cat /proc/$daemon/maps 2>&1; true`,
      );
      expect(seen.split('\n')).toEqual(['0', expect.stringMatching(/^cat: .*Permission denied$/)]);
      // The route that opens tunnels, with no token and a forged one; and the keeper, which says nothing to who has no key.
      const said = (port: number, lines: string[]) => {
        const text = [...lines, '', ''].join('\\r\\n');
        const shell = `exec 3<>/dev/tcp/127.0.0.1/${port}; printf "${text}" >&3; timeout 10 head -1 <&3 | tr -d "\\r\\0"`;
        return output(runtime, 'closed', `bash -c '${shell}'`);
      };
      const upgrade = [
        ...['GET /api/v1/sandbox/egress HTTP/1.1', 'Host: localhost', 'Connection: Upgrade'],
        ...['Upgrade: sandboxd-egress', 'X-Control-Scope: manage'],
      ];
      expect(await said(49_983, upgrade)).toMatch(/^HTTP\/1.1 401 /);
      const forged = `Authorization: Bearer ${'0'.repeat(64)}`;
      expect(await said(49_983, [...upgrade, forged])).toMatch(/^HTTP\/1.1 401 /);
      const target = new URL(consumer.url).host;
      expect(await said(49_984, [`CONNECT ${target} HTTP/1.1`])).not.toContain('HTTP');
      expect(await said(49_984, upgrade)).not.toContain('HTTP');
      // The key of one Pod opens no other.
      const client = new ClusterClient(clusterAccess(cluster.kubeconfigOf('sandbox-manager'), null));
      onTestFinished(() => client.close());
      const pods = new Pods(client, systemClock);
      const keepers = new Keepers(client, pods, new Records(client), systemClock);
      const [own, others] = await Promise.all([pod_name, victim.pod_name].map((name) => keepers.keyOf(name)));
      const host = (await pods.read(victim.pod_name))?.status?.podIP ?? '';
      await expect(connectDaemon({ host, key: own as Buffer }, systemClock)).rejects.toThrow();
      (await connectDaemon({ host, key: others as Buffer }, systemClock)).destroy();
    });

    it('a fork has it, a root that persists has it, and what waits in a pool is not taken for it', async () => {
      const consumer = await startConsumer(HOST_ADDRESS);
      const of = { ...webhook(consumer.url), ...BLOCKED, template_id: 'whole' };
      const parent = await runtime.create(spec('parent', of));
      rules.enforce(parent.pod_name);
      const child = await runtime.fork('parent', spec('child', of));
      if (child.outcome !== 'created') throw new Error(child.outcome);
      rules.enforce(child.pod_name);
      await runtime.resume('child', null);
      await consumer.arrival('sandbox.resumed');
      expect(await output(runtime, 'child', reach(PUBLIC, 8080))).toBe('blocked');
      expect(await output(runtime, 'parent', reach(PUBLIC, 8080))).toBe('blocked');
      await ask(runtime, 'parent', 'POST', '/webhook/publish', { payload: {} });
      await consumer.arrival('agent.event');
      // The label has to be there before the Pod is: its network plugin must not learn of it later than its processes run.
      const given = { ...BLOCKED, template_id: 'pooled', disk_mib: 256 };
      expect((await runtime.create(spec('fresh', given))).pod_name).toMatch(/^sb-/);
      expect(await runtime.end('child')).toEqual({ outcome: 'killed' });
    });

    it('is refused where a policy is missing, and where one lets it out', async () => {
      const objects = () =>
        cluster.kubectl('-n', NAMESPACE, 'get', 'pods,pvc', '-l', 'sandboxd.dev/sandbox-id', '-o', 'name');
      const create = () => runtime.create(spec('refused', BLOCKED));
      const refusal = (message: RegExp) => ({
        code: 'invalid_request',
        message: expect.stringMatching(message),
      });
      const kept = policyText('sandboxes-block-all');
      cluster.kubectl('-n', NAMESPACE, 'delete', 'networkpolicy', 'sandboxes-block-all');
      await expect(create()).rejects.toMatchObject(
        refusal(/^config.network.mode: .* keeps Pods .* from sending$/),
      );
      cluster.apply(kept.replaceAll(/^ {2}(resourceVersion|uid):.*$/gm, ''));
      const leak = policyText('sandboxes-allow-all')
        .replace('name: sandboxes-allow-all', 'name: leak')
        .replace(/ {4}matchExpressions:(\n {4}- [\s\S]*?)(?=\n {4}\w)/, '')
        .replaceAll(/^ {2}(resourceVersion|uid):.*$/gm, '');
      cluster.apply(leak);
      await expect(create()).rejects.toMatchObject(refusal(/the network policy leak lets/));
      cluster.kubectl('-n', NAMESPACE, 'delete', 'networkpolicy', 'leak');
      expect(objects()).toBe('');
      await runtime.create(spec('refused', BLOCKED));
    });
  },
);
