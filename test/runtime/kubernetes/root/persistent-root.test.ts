import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { createLog } from '../../../../src/base/log.ts';
import type { SandboxTemplate } from '../../../../src/contract/templates.ts';
import { requestDaemon } from '../../../../src/runtime/control-client.ts';
import type { Injection } from '../../../../src/runtime/kubernetes/injection.ts';
import { KubernetesRuntime } from '../../../../src/runtime/kubernetes/kubernetes-runtime.ts';
import { objectName } from '../../../../src/runtime/kubernetes/names.ts';
import { startConsumer } from '../../../support/consumer.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  HOST_ADDRESS,
  IMAGE,
  NAMESPACE,
  TestCluster,
  whyNoLongTests,
} from '../../../support/kubernetes/cluster.ts';
import { ask, CRASH, output, SMALL } from '../../../support/runtime/conformance.ts';
import { spec, undeliveredRecord, webhook } from '../../../support/runtime/sandboxes.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 });

const why_not = whyNoLongTests();
if (why_not !== null) console.log(`skipped, tests of persistent roots: ${why_not}`);

/** For looks that take a process each. */
const SLOWLY = { timeout: 120_000, interval: 500 };
const WHOLE: SandboxTemplate = {
  ...{ image: IMAGE, image_pull_secret: null, runtime_class: null, storage_class: null },
  // Below another folder, which a sandbox can move away.
  ...{ user: 0, work_dir: '/srv/work', user_namespace: true, persistent_root: true, ephemeral_mib: 256 },
  ...{ resources: {}, pool: null },
};
const POOL = { size: 1, memory_mib: 256, cpu_millis: 100, disk_mib: 256 };
const TEMPLATES = new Map([
  ['whole', WHOLE],
  ['pooled', { ...WHOLE, pool: POOL }],
]);
const INJECTIONS: Injection[] = ['image-volume', 'init-container'];
const OF = { ...SMALL, template_id: 'whole' };

/** As an installation does: files of every kind, one of them large, and folders of the image removed, replaced and changed. */
const INSTALL = `set -e
mkdir -p /opt/pkg/bin /srv/work/deep
dd if=/dev/urandom of=/opt/pkg/large bs=64k count=40 2>/dev/null
dd if=/dev/urandom of=/opt/pkg/sparse bs=1 count=9 seek=9000000 2>/dev/null
echo '#!/bin/sh' > /opt/pkg/bin/tool; chmod 4755 /opt/pkg/bin/tool
ln /opt/pkg/bin/tool /opt/pkg/bin/same; ln -s ../../etc /opt/pkg/link; mkfifo -m 640 /opt/pkg/pipe
echo odd > "/opt/pkg/-T an odd
name"
rm /usr/bin/tail /usr/bin/seq; echo 'root:x:0:0::/:/bin/sh' > /etc/passwd; chmod 600 /etc/group
rm -r /usr/local/bin; mkdir /usr/local/bin; echo new > /usr/local/bin/new
echo work > /srv/work/deep/file`;
/** What that leaves, as one text. */
const SEEN = `cd /; find opt srv usr/bin usr/local etc/passwd etc/group \\( -type f -printf '%p %m %s %Ts %n\\n' -o -printf '%p %y %m %l\\n' \\) | LC_ALL=C sort | sha256sum
find opt srv usr/bin usr/local/bin etc/passwd etc/group -type f -print0 | LC_ALL=C sort -z | while IFS= read -r -d '' f; do sha256sum < "$f"; done | sha256sum
ls usr/bin/tail usr/bin/seq 2>/dev/null; ls usr/local/bin`;
const bash = (script: string) => `exec bash -c '${script.replaceAll("'", `'\\''`)}'`;

describe.skipIf(why_not !== null)('a root that persists, on a real cluster', () => {
  let cluster: TestCluster;
  const runtimes: KubernetesRuntime[] = [];

  const runtimeOf = async (injection: Injection, templates: string[] = ['whole']) => {
    const options = {
      ...{ kubeconfig: cluster.kubeconfigOf('sandbox-manager'), namespace: null, product_image: IMAGE },
      ...{ injection, webhook_cidrs: [`${HOST_ADDRESS}/32`] },
      templates: new Map([...TEMPLATES].filter(([name]) => templates.includes(name))),
    };
    const runtime = new KubernetesRuntime(options, systemClock, createLog('silent'));
    runtimes.push(runtime);
    await runtime.start();
    return runtime;
  };
  const objects = () => cluster.kubectl('-n', NAMESPACE, 'get', 'pods,pvc,secrets', '-o', 'name');
  /** A sandbox with an event that nobody has taken. */
  const withEvent = async (runtime: KubernetesRuntime, id: string) => {
    const consumer = await startConsumer(HOST_ADDRESS);
    consumer.answer = (_, response) => response.writeHead(503).end();
    await runtime.create(spec(id, { ...webhook(consumer.url), ...OF }));
    const { event_id } = await ask(runtime, id, 'POST', '/webhook/publish', { payload: {} });
    return event_id as string;
  };

  beforeAll(async () => {
    cluster = await TestCluster.start();
    cluster.kubectl('label', '--overwrite', 'ns', NAMESPACE, 'pod-security.kubernetes.io/enforce=privileged');
  });

  afterEach(async () => {
    for (const runtime of runtimes.splice(0)) {
      for (const sandbox_id of await runtime.list()) await runtime.remove(sandbox_id);
      await runtime.stop();
    }
  });

  afterAll(async () => {
    await cluster?.stop();
  });

  it.each(INJECTIONS)(
    'is in a fork byte for byte, and as it was in its source, with the program by %s',
    async (injection) => {
      const runtime = await runtimeOf(injection);
      await runtime.create(spec('parent', OF));
      await output(runtime, 'parent', bash(INSTALL));
      const seen = await output(runtime, 'parent', bash(SEEN));
      expect(seen.split('\n').slice(2)).toEqual(['new']);
      await runtime.fork('parent', spec('child', OF));
      await runtime.resume('child', null);
      expect(await output(runtime, 'child', bash(SEEN))).toBe(seen);
      await output(runtime, 'child', 'rm -r /opt/pkg /usr/local/bin; echo changed > /etc/passwd');
      expect(await output(runtime, 'parent', bash(SEEN))).toBe(seen);
      // A fork of a fork has what that has removed of what its parent had added.
      await runtime.fork('child', spec('grandchild', OF));
      await runtime.resume('grandchild', null);
      expect(await output(runtime, 'grandchild', 'cat /etc/passwd; ls -d /opt/pkg /usr/local/bin || :')).toBe(
        'changed',
      );
    },
  );

  it('is that of a Pod from a pool as well', async () => {
    const runtime = await runtimeOf('image-volume', ['pooled']);
    const up = () =>
      cluster.kubectl(
        ...['-n', NAMESPACE, 'get', 'pods', '-l', 'sandboxd.dev/pool'],
        ...['--field-selector=status.phase=Running', '-o', 'name'],
      );
    await eventually(() => expect(up()).toMatch(/^pod\/pool-/), SLOWLY);
    const of = { ...POOL, template_id: 'pooled' };
    expect(await runtime.create(spec('parent', of))).toEqual({
      ...{ pod_name: expect.stringMatching(/^pool-/), persistence: 'root' },
    });
    await output(runtime, 'parent', bash(INSTALL));
    const seen = await output(runtime, 'parent', bash(SEEN));
    expect(await runtime.fork('parent', spec('child', of))).toMatchObject({ persistence: 'root' });
    await runtime.resume('child', null);
    expect(await output(runtime, 'child', bash(SEEN))).toBe(seen);
    for (const id of ['parent', 'child']) expect(await runtime.end(id)).toEqual({ outcome: 'killed' });
    await runtime.stop();
    for (const id of ['parent', 'child']) await runtime.remove(id);
    // What waited is left to other replicas.
    const empty = await runtimeOf('image-volume');
    await eventually(() => expect(objects()).toBe(''), SLOWLY);
    await empty.stop();
  });

  it('hands over what its daemon had committed when that was killed, or its Pod deleted', async () => {
    const runtime = await runtimeOf('image-volume');
    for (const [id, kill] of [
      ['killed', () => output(runtime, 'killed', CRASH).catch(() => '')],
      ['deleted', async () => cluster.kubectl('-n', NAMESPACE, 'delete', 'pod', objectName('deleted'))],
    ] as const) {
      const event_id = await withEvent(runtime, id);
      await kill();
      await eventually(async () => expect(await runtime.inspect(id)).toBe('lost'), SLOWLY);
      expect(await runtime.fork(id, spec('other', OF))).toEqual({ outcome: 'lost' });
      expect(await runtime.end(id)).toEqual({ outcome: 'lost' });
      const { records, lost } = await undeliveredRecord(runtime, id);
      expect([records.map((each) => each.event_id).includes(event_id), lost]).toEqual([true, 0]);
      await runtime.remove(id);
      expect(objects()).toBe('');
    }
  });

  it('leads nobody out of its volume, whatever its sandbox puts there, and holds up nobody', async () => {
    const runtime = await runtimeOf('image-volume');
    const canary = join(cluster.folder, 'canary');
    writeFileSync(canary, 'a secret of the node');
    await withEvent(runtime, 'hostile');
    // Names that are options, names that lead out, and very many of them.
    await output(
      runtime,
      'hostile',
      bash(`set -e
refused() { if "$@" 2>/dev/null; then echo "allowed: $*" >&2; exit 1; fi; }
refused mv /srv /moved; refused mv /srv/work /moved
cd /; touch -- --checkpoint=1 "--checkpoint-action=exec=touch pwned" "-T" $(seq 1 20000)
ln -s ${canary} /canary; ln -s /keys/key /key; mkfifo /fifo; mkdir -p /keys /volume /control
cd /srv/work; ln -s ${canary} canary; ln -s /keys keys; ln -s ../../state state; mkfifo fifo; mkdir -p "a/$(printf 'b/%.0s' $(seq 1 500))"
mknod whiteout c 0 0 2>/dev/null || :
refused mknod disk b 8 0
refused ls /run/sandboxd-root/upper`),
    );
    expect((await runtime.fork('hostile', spec('child', OF))).outcome).toBe('created');
    await runtime.resume('child', null);
    expect(
      await output(
        runtime,
        'child',
        bash(
          'cd /; ls -d 777 20000 -- --checkpoint=1 -T; ls pwned srv/work/pwned /keys/key 2>/dev/null; readlink /key; pwd -P; cat /canary /key /srv/work/canary 2>/dev/null; [ ! -L /srv/work ] && echo folder',
        ),
      ),
    ).toBe('--checkpoint=1\n-T\n20000\n777\n/keys/key\n/\nfolder');

    // Then its state: each such deletion comes to its end, with nothing of the keeper's in it.
    const key = cluster.kubectl(
      ...['-n', NAMESPACE, 'get', 'secret', objectName('hostile'), '-o=jsonpath={.data.key}'],
    );
    for (const [id, attack] of [
      ['hostile', 'rm -r /var/lib/sandboxd/daemon; ln -s /keys /var/lib/sandboxd/daemon'],
      [
        'child',
        'cd /var/lib/sandboxd/daemon; rm -f outbox.db*; mkfifo outbox.db outbox.db-wal outbox-copy.db',
      ],
      [
        'linked',
        'cd /var/lib/sandboxd/daemon; rm -f outbox.db*; ln -s /keys/key outbox.db; ln -s /keys/key outbox.db-wal',
      ],
      ['copied', 'cd /var/lib/sandboxd/daemon; ln -s /keys/key outbox-copy.db; mkdir outbox-damaged-1.db'],
    ] as const) {
      if (!(await runtime.list()).includes(id)) await runtime.create(spec(id, OF));
      await output(runtime, id, attack).catch(() => '');
      const forked = await runtime.fork(id, spec(`${id}-copy`, OF)).catch((error: Error) => error);
      expect(JSON.stringify(forked)).not.toContain(key);
      await runtime.end(id);
      const pages = await undeliveredRecord(runtime, id).catch((error: Error) => error.message);
      expect(JSON.stringify(pages)).not.toContain(key);
      await runtime.remove(id);
      if ((await runtime.inspect(`${id}-copy`)) !== 'absent') await runtime.end(`${id}-copy`);
      await runtime.remove(`${id}-copy`);
    }
    expect(objects()).toBe('');
    await runtime.create(spec('after', OF));
    expect(await output(runtime, 'after', 'echo fine')).toBe('fine');
  });

  it('on a volume that is full refuses what it cannot keep, goes on once there is room, and is handed over', async () => {
    cluster.boundVolumes(96);
    onTestFinished(() => cluster.boundVolumes(null));
    const runtime = await runtimeOf('image-volume');
    const [event_id] = [await withEvent(runtime, 'full'), await withEvent(runtime, 'beside')];
    const fill =
      'trap "rm -f /usr/fill /usr/rest; exit" USR1; dd if=/dev/zero of=/usr/fill bs=64k; dd if=/dev/zero of=/usr/rest bs=512; echo done >&2; while :; do sleep 0.2; done';
    const { process_id } = await ask(runtime, 'full', 'POST', '/processes', { shell: bash(fill) });
    const published = (sandbox: string) =>
      ask(runtime, sandbox, 'POST', '/webhook/publish', { payload: { text: 'x'.repeat(100_000) } }).catch(
        (error: Error) => error.message,
      );
    await eventually(async () => expect(await published('full')).toContain('outbox_unavailable'), SLOWLY);
    expect(await published('beside')).toHaveProperty('event_id');
    expect([await runtime.inspect('full'), await runtime.liveness('full')]).toEqual(['running', 'alive']);
    const signal = { method: 'POST', path: `/processes/${process_id}/signal`, body: { signal: 'SIGUSR1' } };
    // Its answer has no body.
    await requestDaemon(() => runtime.connect('full'), { ...signal, within_ms: 30_000 });
    await eventually(async () => expect(await published('full')).toHaveProperty('event_id'), SLOWLY);

    // A deletion of one that is full.
    await ask(runtime, 'full', 'POST', '/processes', { shell: bash(fill) });
    await eventually(async () => expect(await published('full')).toContain('outbox_unavailable'), SLOWLY);
    await runtime.end('full');
    const { records, lost } = await undeliveredRecord(runtime, 'full');
    expect([records.map((each) => each.event_id).includes(event_id), lost]).toEqual([true, 0]);
    await runtime.remove('full');
    expect(await published('beside')).toHaveProperty('event_id');
  });
});
