import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { InjectionOption } from '../../contract/runtimes.ts';
import type { SandboxTemplates } from '../../contract/templates.ts';
import { checkRights } from './access.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import { dryRun } from './dry-run.ts';
import { type Injection, knownInjection } from './injection.ts';
import { whyNotBlocked } from './network/network-policies.ts';
import { isQuota } from './refusals.ts';

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
