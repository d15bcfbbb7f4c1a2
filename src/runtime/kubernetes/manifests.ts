import { NO_SIGUSR1 } from '../../base/engine/flags.ts';
import type { SandboxTemplate } from '../../contract/templates.ts';
import { RUN_DIR, SOCKET, TOKEN } from '../rootfs.ts';
import type { RuntimeSpec } from '../runtime.ts';
import type { Meta } from './api/objects.ts';
import { type Injection, LIBRARY, PROGRAM_MOUNT, PROGRAM_MOUNT_DIR, programParts } from './injection.ts';
import { BEGIN_FILE, KEEPER_PORT, RUN_FOLDER, VOLUME } from './keeper/keeper-protocol.ts';
import { readerName } from './names.ts';
import { EARLY_SOCKET, ROOT_MOUNT, type RootTask, taskArguments } from './root/root-task.ts';

/** The containers of a Pod. */
export const SANDBOX = 'sandbox';
/** See `SANDBOX`. */
export const KEEPER = 'keeper';
/** The key of the Pod's secret. */
export const KEY_FILE = 'key';

/** The port of the daemon in each Pod's own network. */
const DAEMON_PORT = 49_983;
const STATE_MOUNT = '/var/lib/sandboxd';
const CONTROL_SOCKET = `${RUN_DIR}/${SOCKET}`;
const BEGIN_PATH = `${RUN_DIR}/${BEGIN_FILE}`;
const WAIT_VARIABLE = 'SANDBOXD_WAIT_FOR';
const PATH = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${PROGRAM_MOUNT_DIR}/usr/local/bin`;

/** What a container of this product may write, which is what its node keeps of its output: 50 MiB, unless that is set otherwise. */
const KEEPER_EPHEMERAL = { 'ephemeral-storage': '64Mi' };
/** What a keeper needs; the reader of a large outbox has a heap of its own. */
const KEEPER_RESOURCES = {
  requests: { cpu: '10m', memory: '64Mi', ...KEEPER_EPHEMERAL },
  limits: { cpu: '1', memory: '512Mi', ...KEEPER_EPHEMERAL },
};
/** Where everybody writes what need not be kept. */
const TMP = '/tmp';
const STOP_GRACE_S = 30;
/** What a daemon may use while it starts: with a tenth of a core, as sandboxes have by default, that takes seconds. */
const START_CPU_MILLIS = 1_000;

/** What every container is told of the cluster, which is nothing to a sandbox. */
const CLUSTER_VARIABLES = [
  'KUBERNETES_SERVICE_HOST',
  'KUBERNETES_SERVICE_PORT',
  'KUBERNETES_SERVICE_PORT_HTTPS',
  'KUBERNETES_PORT',
  ...['', '_ADDR', '_PORT', '_PROTO'].map((part) => `KUBERNETES_PORT_443_TCP${part}`),
].join(' ');

/** Reaps what the sandbox's processes leave, passes SIGTERM on, and ends with the daemon. A fork's daemon waits for its volume. */
const INIT = `[ -z "$SANDBOXD_WAIT_FOR" ] || until [ -e "$SANDBOXD_WAIT_FOR" ]; do sleep 0.05; done
unset SANDBOXD_WAIT_FOR ${CLUSTER_VARIABLES}
"$@" &
daemon=$!
trap 'kill -TERM $daemon' TERM
while kill -0 $daemon 2>/dev/null; do wait $daemon; code=$?; done
exit $code`;

/** What every Pod of this manager is made with. */
export interface PodSettings {
  /** The image of this product. */
  product_image: string;
  /** How the daemon's program gets into sandboxes. */
  injection: Injection;
}

/** The claim of a sandbox's volume: as long as it is there, the sandbox exists. `given`: what it is called, and for whom it is. */
export function claimManifest(
  { disk_mib }: Pick<RuntimeSpec, 'disk_mib'>,
  { storage_class }: SandboxTemplate,
  given: { name: string; labels: Record<string, string>; annotations?: Record<string, string> },
) {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: given,
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: `${disk_mib}Mi` } },
      ...(storage_class === null ? {} : { storageClassName: storage_class }),
    },
  };
}

/** The key of a Pod's keeper, which only that container sees. */
export function secretManifest(owner: Meta, key: Buffer) {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: owner.name,
      labels: owner.labels ?? {},
      ownerReferences: [ownedBy(owner)],
    },
    type: 'Opaque',
    immutable: true,
    data: { [KEY_FILE]: key.toString('base64') },
  };
}

/** What a Pod is made of, of a sandbox's specification. */
type PodSpec = Pick<RuntimeSpec, 'memory_mib' | 'cpu_millis'>;

/** The Pod of a volume claim, `owner`. `waits`: its daemon begins only once the keeper says that the volume is complete. */
export function podManifest(
  spec: PodSpec,
  owner: Meta,
  template: SandboxTemplate,
  settings: PodSettings,
  waits: boolean,
) {
  const { product_image: image, injection } = settings;
  const confined = { image, resources: KEEPER_RESOURCES, securityContext: CONFINED };
  const { volume, ephemeral_mib, ...program } = programParts(injection, template, confined);
  // A node counts the volumes of a Pod, the program's copy among them, against what its containers may write together.
  const container = sandboxContainer(spec, template, template.ephemeral_mib + ephemeral_mib, waits);
  const sandbox = template.persistent_root ? withRoot(container, waits) : container;
  return pod(owner.name, owner, template, {
    ...program,
    containers: [sandbox, keeperContainer(settings)],
    volumes: [...volumesOf(owner), ...tmpVolumes(template), volume],
  });
}

/** What of a template decides who may read the volume of a sandbox, and where. */
export type ReaderTemplate = Pick<
  SandboxTemplate,
  'user' | 'user_namespace' | 'runtime_class' | 'image_pull_secret'
>;

/** That part of a template, as a sandbox's record keeps it. */
export function readerTemplate(template: ReaderTemplate): ReaderTemplate {
  const { user, user_namespace, runtime_class, image_pull_secret } = template;
  return { user, user_namespace, runtime_class, image_pull_secret };
}

/** The Pod that reads the volume of a sandbox that is no more. */
export function readerManifest(owner: Meta, template: ReaderTemplate, settings: PodSettings) {
  return pod(readerName(owner.name), owner, template, {
    containers: [keeperContainer(settings)],
    volumes: volumesOf(owner),
  });
}

function pod(name: string, owner: Meta, template: ReaderTemplate, parts: object) {
  const { user, user_namespace, runtime_class, image_pull_secret } = template;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: owner.labels ?? {}, ownerReferences: [ownedBy(owner)] },
    spec: {
      // A sandbox that has died is lost: nothing may start another daemon on its volume.
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: STOP_GRACE_S,
      ...(user_namespace ? { hostUsers: false } : {}),
      ...(runtime_class === null ? {} : { runtimeClassName: runtime_class }),
      ...(image_pull_secret === null ? {} : { imagePullSecrets: [{ name: image_pull_secret }] }),
      securityContext: {
        runAsUser: user,
        runAsGroup: user,
        fsGroup: user,
        runAsNonRoot: user !== 0,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      // Otherwise the cluster would delete the Pod of a node that is away, and with it what is known of it.
      tolerations: ['not-ready', 'unreachable'].map((key) => ({
        key: `node.kubernetes.io/${key}`,
        operator: 'Exists',
        effect: 'NoExecute',
      })),
      ...parts,
    },
  };
}

const CONFINED = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };

/** Where the root does not persist `/tmp` is a folder of the node with a bound of its own, and not a layer of the image. */
function hasTmp({ persistent_root, work_dir }: SandboxTemplate): boolean {
  return !persistent_root && work_dir !== TMP;
}

function tmpVolumes(template: SandboxTemplate): object[] {
  if (!hasTmp(template)) return [];
  return [{ name: 'tmp', emptyDir: { sizeLimit: `${template.ephemeral_mib}Mi` } }];
}

function sandboxContainer(spec: PodSpec, template: SandboxTemplate, ephemeral_mib: number, waits: boolean) {
  const { image, work_dir } = template;
  const requests = { ...resourcesOf(spec), 'ephemeral-storage': `${ephemeral_mib}Mi` };
  return {
    name: SANDBOX,
    image,
    command: ['/bin/sh', '-c', INIT, 'sh', ...daemonCommand(CONTROL_SOCKET)],
    workingDir: work_dir,
    env: [
      { name: 'PATH', value: PATH },
      { name: 'HOME', value: work_dir },
      ...(waits ? [{ name: WAIT_VARIABLE, value: BEGIN_PATH }] : []),
    ],
    // What its daemon has said last tells why it did not start.
    terminationMessagePolicy: 'FallbackToLogsOnError',
    // Until its init is done nothing of the sandbox runs: see `applyFinalResources`.
    resources: { requests, limits: { ...requests, cpu: `${Math.max(spec.cpu_millis, START_CPU_MILLIS)}m` } },
    resizePolicy: ['cpu', 'memory'].map((resourceName) => ({ resourceName, restartPolicy: 'NotRequired' })),
    securityContext: CONFINED,
    volumeMounts: [
      { name: 'data', mountPath: work_dir, subPath: VOLUME.work },
      { name: 'data', mountPath: STATE_MOUNT, subPath: VOLUME.state },
      { name: 'control', mountPath: RUN_DIR, subPath: RUN_FOLDER },
      ...(hasTmp(template) ? [{ name: 'tmp', mountPath: TMP }] : []),
      PROGRAM_MOUNT,
    ],
  };
}

/**
 * What it takes to make a root: mounts, and to change files of every owner and mode as the sandbox does. It is of the
 * sandbox's own user namespace and means nothing on the node; the daemon and all that it starts have none of it.
 */
const ROOT_CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'SETFCAP', 'SETPCAP', 'SYS_ADMIN'];

/** The same with a root that persists. */
function withRoot(container: ReturnType<typeof sandboxContainer>, waits: boolean) {
  const library = `${PROGRAM_MOUNT_DIR}${LIBRARY}`;
  const early_socket = `${RUN_DIR}/${EARLY_SOCKET}`;
  const task: RootTask = {
    root: ROOT_MOUNT,
    own: [PROGRAM_MOUNT_DIR, RUN_DIR, STATE_MOUNT],
    socket: CONTROL_SOCKET,
    early_socket,
    wait_for: waits ? BEGIN_PATH : null,
    command: daemonCommand(early_socket),
  };
  return {
    ...container,
    command: [`${library}/node`, NO_SIGUSR1, '--no-warnings', `${library}/root.cjs`, ...taskArguments(task)],
    env: container.env.filter(({ name }) => name !== WAIT_VARIABLE),
    // The default profile of a node forbids mounts. The program has the product's own filter before anything else begins.
    securityContext: {
      capabilities: { drop: ['ALL'], add: ROOT_CAPABILITIES },
      seccompProfile: { type: 'Unconfined' },
      appArmorProfile: { type: 'Unconfined' },
    },
    volumeMounts: [...container.volumeMounts, { name: 'data', mountPath: ROOT_MOUNT, subPath: VOLUME.root }],
  };
}

function daemonCommand(socket: string): string[] {
  return [
    ...[`${PROGRAM_MOUNT_DIR}/usr/local/bin/sandboxd`, '--await-init', '--port', String(DAEMON_PORT)],
    ...['--state-dir', `${STATE_MOUNT}/${VOLUME.state_dir}`],
    ...['--control-socket', socket, '--control-token-file', `${RUN_DIR}/${TOKEN}`],
  ];
}

function keeperContainer({ product_image }: PodSettings) {
  return {
    name: KEEPER,
    image: product_image,
    command: [
      ...[`${LIBRARY}/node`, NO_SIGUSR1, `${LIBRARY}/keeper.cjs`],
      ...['--key-file', `/keys/${KEY_FILE}`, '--control', '/control', '--volume', '/volume'],
    ],
    ports: [{ name: 'keeper', containerPort: KEEPER_PORT }],
    resources: KEEPER_RESOURCES,
    securityContext: { ...CONFINED, readOnlyRootFilesystem: true },
    volumeMounts: [
      { name: 'data', mountPath: '/volume' },
      { name: 'control', mountPath: '/control' },
      { name: 'key', mountPath: '/keys', readOnly: true },
    ],
  };
}

function volumesOf({ name }: Meta) {
  return [
    { name: 'data', persistentVolumeClaim: { claimName: name } },
    { name: 'control', emptyDir: { sizeLimit: '1Mi' } },
    { name: 'key', secret: { secretName: name } },
  ];
}

/** What a sandbox has, and is scheduled by: no more and no less. */
export function resourcesOf({ memory_mib, cpu_millis }: Pick<RuntimeSpec, 'memory_mib' | 'cpu_millis'>) {
  return { memory: `${memory_mib}Mi`, cpu: `${cpu_millis}m` };
}

function ownedBy({ name, uid }: Meta) {
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', name, uid };
}
