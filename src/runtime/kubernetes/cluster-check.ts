import { kernelRandom } from '../../base/entropy.ts';
import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { InjectionOption, SandboxTemplate, SandboxTemplates } from '../../contract/templates.ts';
import { type ClusterClient, ClusterRefusal, isQuota } from './api/cluster-client.ts';
import type { Meta, Pod } from './api/objects.ts';
import { type Injection, knownInjection } from './injection.ts';
import { type PodSettings, podManifest } from './manifests.ts';
import { MANAGED } from './names.ts';
import { whyNotBlocked } from './network-policies.ts';
import { processLimitations } from './node-limits.ts';

/** What is asked of a cluster. */
export interface ClusterQuestion {
  namespace: string;
  templates: SandboxTemplates;
  product_image: string;
  injection: InjectionOption;
}

/** What a cluster allows. `limitations`: what it refuses or does not enforce, a phrase each. */
export interface ClusterAnswer {
  injection: Injection;
  limitations: string[];
}

/** What an API server without image volumes says of a Pod with one, and what a namespace says that does not let Pods have them. */
const NO_IMAGE_VOLUMES = [
  /must specify a volume type/,
  /restricted volume types? .*"image"/,
  /volumes\[\d+\]\.image/,
];
/** Why the network is not metered. */
const NOT_COUNTED = 'the network of Pods is not counted';
const POLICIES_UNKNOWN =
  'network policies, and with them block-all, hold only if the network plugin of the cluster enforces them';
/** What `/readyz` says of the network. */
export const NETWORK_REASON = `${NOT_COUNTED}; ${POLICIES_UNKNOWN}`;

/**
 * What the manager cannot do without in its namespace. `fixtures/deploy/kubernetes/` grants this and, for claims with `block-all`,
 * the list of network policies, and nothing else.
 */
export const NEEDED_RIGHTS: Record<string, readonly string[]> = {
  pods: ['create', 'delete', 'get', 'list', 'watch'],
  'pods/resize': ['patch'],
  persistentvolumeclaims: ['create', 'delete', 'get', 'list', 'patch', 'watch'],
  secrets: ['create', 'delete', 'get'],
  // Why a volume is not made is told nowhere else.
  events: ['list'],
};

/** The Pod as the API server would make it, or why it refuses, in a line of at most 300 characters. */
type DryRun = { pod: Pod; refusal: null } | { pod: null; refusal: string };

/** No more than a keeper has: what is too small for a namespace is too small for any Pod of this manager. */
const SIZE = { memory_mib: 128, cpu_millis: 10 };
const REFUSAL_MAX = 300;

/**
 * Checks that the cluster answers and allows what is needed, and lets its API server check a Pod of every template without
 * making one. Throws StartError, with every right that is missing, for a namespace that is missing, and for image volumes that
 * are asked for and refused.
 */
export async function checkCluster(
  client: ClusterClient,
  asked: ClusterQuestion,
  log: Log,
): Promise<ClusterAnswer> {
  try {
    await checkRights(client, asked.namespace);
    const answer = await checkTemplates(client, asked);
    const why = await whyNotBlocked(client);
    if (why !== null) answer.limitations.push(`claims with block-all are refused: ${why}`);
    answer.limitations.push(...(await processLimitations(client)));
    for (const limitation of answer.limitations) log.warn({ limitation }, 'a wall or limit is missing');
    return answer;
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`--runtime kubernetes: ${(error as Error).message}`, 1, error);
  }
}

async function checkTemplates(client: ClusterClient, asked: ClusterQuestion): Promise<ClusterAnswer> {
  const { namespace, templates, product_image } = asked;
  let injection = knownInjection(asked.injection);
  const limitations = [NOT_COUNTED, POLICIES_UNKNOWN];
  for (const [name, template] of templates) {
    let why = (await dryRun(client, template, { product_image, injection })).refusal;
    if (why !== null && injection === 'image-volume' && isAboutImageVolumes(why)) {
      if (asked.injection === 'image-volume') {
        throw new StartError(`--kubernetes-injection image-volume: the cluster refuses it: ${why}`);
      }
      injection = 'init-container';
      why = (await dryRun(client, template, { product_image, injection })).refusal;
    }
    if (why === null || isQuota(why)) continue;
    if (/^namespaces ".*" not found/.test(why)) {
      throw new StartError(`--runtime kubernetes: the namespace ${namespace} does not exist`);
    }
    limitations.push(`the cluster refuses Pods of template ${name}: ${why}`);
  }
  return { injection, limitations };
}

function isAboutImageVolumes(refusal: string): boolean {
  return NO_IMAGE_VOLUMES.some((each) => each.test(refusal));
}

/** Throws StartError if the namespace is missing, or with every right that the manager has not. */
async function checkRights(client: ClusterClient, namespace: string): Promise<void> {
  const asked = Object.entries(NEEDED_RIGHTS).flatMap(([named, verbs]) =>
    verbs.map((verb) => ({ named, verb })),
  );
  const answers = await Promise.all(
    asked.map(async ({ named, verb }) => {
      const [resource = '', subresource] = named.split('/');
      const review = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: {
          resourceAttributes: { namespace, verb, resource, ...(subresource ? { subresource } : {}) },
        },
      };
      const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
      const { status } = await client.create<{ status?: { allowed?: boolean } }>(path, review);
      return status?.allowed === true ? null : `${verb} ${named}`;
    }),
  );
  const missing = answers.filter((each) => each !== null);
  if (missing.length === 0) return;
  const hint = missing.length === asked.length ? ' (is there such a namespace?)' : '';
  throw new StartError(
    `--runtime kubernetes: the rights in namespace ${namespace} are missing${hint}: ${missing.join(', ')}`,
  );
}

/**
 * Lets the API server check a sandbox's Pod of a template, of nobody, without making it. Throws ApiError `unavailable` where
 * the cluster does not answer.
 */
export async function dryRun(
  client: ClusterClient,
  template: SandboxTemplate,
  settings: PodSettings,
): Promise<DryRun> {
  const owner: Meta = {
    name: `probe-${kernelRandom(8).toString('hex')}`,
    uid: 'probe',
    resourceVersion: '1',
    labels: { ...MANAGED },
  };
  const manifest = podManifest(SIZE, owner, template, settings, false);
  try {
    return { pod: await client.create<Pod>(`${client.path('pods')}?dryRun=All`, manifest), refusal: null };
  } catch (error) {
    if (!(error instanceof ClusterRefusal)) throw error;
    return { pod: null, refusal: error.message.replaceAll(/\s+/g, ' ').slice(0, REFUSAL_MAX) };
  }
}
