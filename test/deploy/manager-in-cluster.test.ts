import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startConsumer } from '../support/consumer.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import {
  API_SERVICE,
  HOST_ADDRESS,
  NAMESPACE,
  TestCluster,
  whyNoLongTests,
} from '../support/kubernetes/cluster.ts';
import { Forwarders } from '../support/kubernetes/forwarders.ts';
import { CHECKOUT, installedClient, installPackage } from '../support/packed-package.ts';
import { postgresPrograms, startPostgres } from '../support/postgres.ts';
import { HAS_REDIS, RedisServer } from '../support/redis.ts';
import { liveThroughClient } from '../support/sdk-life.ts';

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 });

const SECRET = '<SIGNING_SECRET>';
/** The Pod, the volume and the secret of the sandbox that the manual's commands make. */
const OF_FIRST_SANDBOX = 3;
const WITHIN = { timeout: 300_000, interval: 500 };
const PROGRAM = '/opt/sandbox-manager/node_modules/.bin/sandbox-manager';
/** In the manifests, without a registry. */
const LIBRARY = 'docker.io/library';

/** Why these tests do not run here; null if they do. */
function whyNot(): string | null {
  const why_not = whyNoLongTests();
  if (why_not !== null) return why_not;
  return postgresPrograms() === null || !HAS_REDIS ? 'PostgreSQL or Redis is missing' : null;
}

const why_not = whyNot();
if (why_not !== null) console.log(`skipped, the manager in a cluster: ${why_not}`);

/** The manual's commands from an empty cluster to the first event, at a port that is free here. */
function commands(port: number): string {
  const manual = readFileSync(join(CHECKOUT, 'src/manager/README.md'), 'utf8');
  const [, block = ''] = /From an empty cluster to the first event:\n\n```sh\n(.*?)```/s.exec(manual) ?? [];
  expect(block.trim().split('\n')).toHaveLength(5);
  return block
    .replaceAll(':8080', `:${port}`)
    .replace('sandbox-manager 8080 &', `sandbox-manager ${port}:8080 &`);
}

describe.skipIf(why_not !== null)('the manager in a cluster, from fixtures/deploy/kubernetes/manager', () => {
  let cluster: TestCluster;
  let folder: string;
  let env: NodeJS.ProcessEnv;
  const forwarders = new Forwarders();
  const ends: (() => unknown)[] = [];

  /** Beside this process, which passes connections of Pods on. */
  const kubectl = async (...args: string[]) =>
    (await promisify(execFile)('kubectl', ['-n', NAMESPACE, ...args], { env })).stdout;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandboxd-test-in-cluster-'));
    ends.push(() => rmSync(folder, { recursive: true, force: true }));
    installPackage(folder);
    cluster = await TestCluster.start(1, { is_empty: true });
    ends.push(() => cluster.stop());
    // Without what npm says of itself to the tests.
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith('npm_'));
    env = { ...Object.fromEntries(own), KUBECONFIG: cluster.kubeconfig };
    await forwarders.add(API_SERVICE, { host: HOST_ADDRESS, port: 6443 }, 443);
    ends.push(() => forwarders.stop());
    cluster.addImage(`${LIBRARY}/sandboxd-base:0.1.0`);
    mkdirSync(join(cluster.tree, 'opt/sandbox-manager'), { recursive: true });
    const modules = 'opt/sandbox-manager/node_modules';
    cpSync(join(folder, 'node_modules'), join(cluster.tree, modules), {
      recursive: true,
      verbatimSymlinks: true,
    });
    symlinkSync(PROGRAM, join(cluster.tree, 'usr/local/bin/sandbox-manager'));
    cluster.addImage(`${LIBRARY}/sandbox-manager:0.1.0`, [PROGRAM]);
    mkdirSync(join(folder, 'work'));
    for (const name of ['fixtures', 'package.json', 'dist'])
      symlinkSync(join(CHECKOUT, name), join(folder, 'work', name));
  });

  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });

  it('has its first event after the five commands of the manual', async () => {
    const shell = run(commands(await freePort()), join(folder, 'work'), env);
    ends.push(() => shell.end());
    await eventually(
      () => expect(shell.hasEnded() || shell.said().includes('sandbox.ready')).toBe(true),
      WITHIN,
    );
    const log = await kubectl('logs', 'deploy/sandbox-manager', '--tail=20').catch(String);
    expect(shell.said(), log).toContain('sandbox.ready');
    await shell.end();
  });

  it('runs as two replicas on PostgreSQL and Redis, and serves the client of the package', async () => {
    const [postgres, redis] = [await startPostgres(), await RedisServer.start()];
    ends.push(
      () => postgres.stop(),
      () => redis.stop(),
    );
    const reachable = async (url: string) => {
      const { port } = new URL(url);
      const to = { host: '127.0.0.1', port: Number(port) };
      return url.replace(`127.0.0.1:${port}`, `${HOST_ADDRESS}:${await forwarders.add(HOST_ADDRESS, to)}`);
    };
    const settings = {
      DATABASE: await reachable(await postgres.database()),
      REDIS: await reachable(redis.url),
      REPLICAS: '2',
      ALLOW_WEBHOOK_CIDR: `${HOST_ADDRESS}/32`,
    };
    const literals = Object.entries(settings).map(
      ([name, value]) => `--from-literal=SANDBOX_MANAGER_${name}=${value}`,
    );
    await kubectl('create', 'secret', 'generic', 'sandbox-manager-stores', ...literals);
    await kubectl('scale', 'deployment/sandbox-manager', '--replicas=2');
    await kubectl('rollout', 'restart', 'deployment/sandbox-manager');
    await kubectl('rollout', 'status', 'deployment/sandbox-manager', '--timeout=300s');
    const scopes = ['sandboxes:write', 'webhooks:read'].flatMap((scope) => ['--scope', scope]);
    const create = ['sandbox-manager', 'token', 'create', '--team', 'team_1', ...scopes];
    const token = (await kubectl('exec', 'deploy/sandbox-manager', '--', ...create)).trim();
    const pods = (await kubectl('get', 'pods', '-o', 'name'))
      .split('\n')
      .filter((name) => /sandbox-manager/.test(name));
    expect(pods).toHaveLength(2);
    const consumer = await startConsumer(HOST_ADDRESS);
    const sdk = await installedClient(folder);
    for (const pod of pods) {
      const port = await freePort();
      const forward = run(`exec kubectl -n ${NAMESPACE} port-forward ${pod} ${port}:8080`, folder, env);
      ends.push(() => forward.end());
      await eventually(() => expect(forward.said()).toContain('Forwarding from'), WITHIN);
      const url = `http://127.0.0.1:${port}`;
      const ready = await (await fetch(`${url}/readyz`)).json();
      expect(ready).toMatchObject({ data: { ready: true } });
      await liveThroughClient(sdk, { url, token, webhook: { url: consumer.url, secret: SECRET } });
    }
    expect(consumer.types).toEqual(
      expect.arrayContaining(['sandbox.ready', 'sandbox.killed', 'sandbox.deleted']),
    );
    expect(consumer.unsigned(SECRET)).toEqual([]);
    await eventually(async () => {
      const left = (await kubectl('get', 'pods,pvc,secrets', '-o', 'name')).split('\n');
      expect(left.filter((name) => name.includes('/sb-'))).toHaveLength(OF_FIRST_SANDBOX);
    }, WITHIN);
  });
});

/** A script of bash in a group of its own. */
function run(script: string, cwd: string, env: NodeJS.ProcessEnv) {
  const child: ChildProcess = spawn('bash', ['-ec', script], { cwd, env, detached: true });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (more: string) => {
      text += more;
    });
  }
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    said: () => text,
    hasEnded,
    async end() {
      const ended = hasEnded() ? null : once(child, 'exit');
      try {
        // What it has left in the background as well.
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {} // nothing of it runs
      await ended;
    },
  };
}
