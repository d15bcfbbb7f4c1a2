import { kernelRandom } from '../../base/entropy.ts';
import type { SandboxTemplate } from '../../contract/templates.ts';
import { type ClusterClient, ClusterRefusal } from './api/cluster-client.ts';
import type { Meta, Pod } from './api/objects.ts';
import { type PodSettings, podManifest } from './manifests.ts';
import { MANAGED } from './names.ts';

/** The Pod as the API server would make it, or why it refuses, in a line of at most 300 characters. */
export type DryRun = { pod: Pod; refusal: null } | { pod: null; refusal: string };

/** No more than a keeper has: what is too small for a namespace is too small for any Pod of this manager. */
const SIZE = { memory_mib: 128, cpu_millis: 10 };
const REFUSAL_MAX = 300;

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
