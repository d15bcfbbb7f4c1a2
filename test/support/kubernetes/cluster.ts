import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execaSync } from 'execa';
import { stringify } from 'yaml';
import { buildImage } from '../../../.build/image/build.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import { IS_ROOT } from '../rights.ts';
import { ADMIN_PATH, missingPrograms, runSync } from '../run-sync.ts';
import { FolderVolumes } from './volumes.ts';

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const ARCHIVE = here('../../../../shared/kube/kube-tools.tar.zst');
const TOOLS = ['kubectl', 'python3', 'openssl', 'ip', 'unshare', 'nsenter', 'zstd'];
/** The first two numbers of its addresses, which no other cluster on this machine has. */
const NET = freeNet();

/** The image that is the product's, and that of sandboxes. */
export const IMAGE = 'docker.io/local/sandboxd:1';
/** This machine, as Pods reach it. */
export const HOST_ADDRESS = `${NET}.0.1`;
/** The address of the service `kubernetes`, as Pods are told; the API itself is at port 6443 of this machine. */
export const API_SERVICE = `${NET}.255.1`;
/** The folder of the manifests. */
const MANIFESTS = here('../../../fixtures/deploy/kubernetes/manager');
/** The namespace in the manifests. */
export const NAMESPACE = 'sandboxes';

function freeNet(): string {
  const taken = Object.values(networkInterfaces()).flatMap((each) =>
    (each ?? []).map(({ address }) => address),
  );
  const nets = Array.from({ length: 50 }, (_, n) => `10.${200 + ((process.pid + n) % 50)}`);
  const free = nets.find((net) => !taken.some((address) => address.startsWith(`${net}.`)));
  if (free === undefined) throw new Error('every network of test clusters is in use');
  return free;
}

/** Why no cluster can be started here; null if one can. */
export function whyNoCluster(): string | null {
  if (!IS_ROOT) return 'it takes root';
  const missing = missingPrograms(TOOLS);
  if (missing.length > 0) return `${missing.join(', ')} is missing`;
  if (process.env.KUBE_BIN || existsSync(ARCHIVE)) return null;
  return 'KUBE_BIN names no folder with the programs of Kubernetes';
}

/** Why the long tests of clusters do not run; null if they do. */
export function whyNoLongTests(): string | null {
  return process.env.SANDBOXD_TEST_CLUSTERS === 'all'
    ? whyNoCluster()
    : 'they are in npm run test:kubernetes';
}

/** A real cluster on this machine: an API server, a scheduler, and nodes with kubelet and containerd. */
export class TestCluster {
  readonly folder: string;
  readonly #env: NodeJS.ProcessEnv;
  #volumes: FolderVolumes | null = null;

  private constructor(folder: string, bin: string) {
    this.folder = folder;
    const gates = { KUBE_GATES: 'ImageVolume=true', KUBE_NET: NET };
    this.#env = { PATH: ADMIN_PATH, KUBE_BIN: bin, KUBE_DIR: join(folder, 'cluster'), ...gates };
  }

  /** Starts a cluster with the product's image and, unless it is to be empty, the product's manifests in it. */
  static async start(nodes = 1, { is_empty = false } = {}): Promise<TestCluster> {
    const folder = mkdtempSync(join(tmpdir(), 'sandboxd-test-kube-'));
    const bin = process.env.KUBE_BIN ?? join(folder, 'bin');
    if (!process.env.KUBE_BIN) {
      mkdirSync(bin);
      runSync('sh', '-c', 'zstd -dc --long=27 "$1" | tar -x -C "$2"', 'sh', ARCHIVE, bin);
    }
    const cluster = new TestCluster(folder, bin);
    cluster.script('up', String(nodes));
    try {
      await cluster.#fill(is_empty);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  async #fill(is_empty: boolean): Promise<void> {
    const bundle = join(this.folder, 'bundle');
    await buildImage(bundle);
    runSync(here('tree.sh'), this.tree, bundle);
    this.addImage(IMAGE);
    if (!is_empty) {
      this.kubectl('apply', '-k', MANIFESTS);
      // The manager of the tests runs here.
      this.kubectl('-n', NAMESPACE, 'delete', 'deployment,pvc', 'sandbox-manager');
    }
    const access = clusterAccess(this.kubeconfig, NAMESPACE);
    this.#volumes = new FolderVolumes(access, join(this.folder, 'volumes'));
    await this.#volumes.start();
  }

  /** The access of who may do anything. */
  get kubeconfig(): string {
    return join(this.folder, 'cluster/kubeconfig');
  }

  /** The access of a service account, as the manifests give it its rights. */
  kubeconfigOf(account: string): string {
    const token = this.kubectl('-n', NAMESPACE, 'create', 'token', account).trim();
    const path = join(this.folder, `${account}.kubeconfig`);
    const server = `https://${HOST_ADDRESS}:6443`;
    const cluster = { server, 'certificate-authority': join(this.folder, 'cluster/pki/ca.crt') };
    const content = {
      'current-context': 'test',
      clusters: [{ name: 'test-cluster', cluster }],
      users: [{ name: account, user: { token } }],
      contexts: [{ name: 'test', context: { cluster: 'test-cluster', user: account, namespace: NAMESPACE } }],
    };
    writeFileSync(path, stringify(content), { mode: 0o600 });
    return path;
  }

  kubectl(...args: string[]): string {
    const env = { KUBECONFIG: this.kubeconfig };
    return execaSync('kubectl', args, { env, stdin: 'ignore', stripFinalNewline: false }).stdout;
  }

  /** The root of the image that every node has, to add to. */
  get tree(): string {
    return join(this.folder, 'tree');
  }

  /** Makes an image of the tree, on every node. */
  addImage(name: string, entrypoint: string[] = []): void {
    const archive = join(this.folder, 'image.tar');
    const given = ['--entrypoint', JSON.stringify(entrypoint)];
    runSync('python3', here('image.py'), name, this.tree, archive, ...given);
    this.script('image', archive);
    rmSync(archive);
  }

  /** Makes the objects of a manifest. */
  apply(manifest: string): void {
    const env = { KUBECONFIG: this.kubeconfig };
    execaSync('kubectl', ['apply', '-f', '-'], { env, input: manifest });
  }

  /** Makes each new volume a file system of its own, of this size on the first node, which can be full; null: as before. */
  boundVolumes(size_mib: number | null): void {
    if (this.#volumes === null) return;
    this.#volumes.onFolder = (folder) => {
      if (size_mib === null) return;
      const image = `${folder}.img`;
      writeFileSync(image, '');
      truncateSync(image, size_mib * 1024 * 1024);
      runSync('mkfs.ext4', '-q', '-F', image);
      this.script('in', 'node1', 'mount', '-o', 'loop', image, folder);
      this.script('in', 'node1', 'chmod', '0777', folder);
    };
  }

  /** A verb of `cluster.sh`. */
  script(...args: string[]): void {
    execaSync(here('cluster.sh'), args, { env: this.#env, stdin: 'ignore', stdout: 'ignore' });
  }

  /** Ends all of it; nothing is left. */
  async stop(): Promise<void> {
    await this.#volumes?.stop();
    this.script('down');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
