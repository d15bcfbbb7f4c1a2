import type { Log } from '../../base/log.ts';
import { StartError } from '../../contract/errors.ts';
import type { SandboxTemplate, SandboxTemplates } from '../../contract/templates.ts';
import { type ClusterClient, isQuota } from './api/cluster-client.ts';
import type { Pod } from './api/objects.ts';
import { dryRun } from './cluster-check.ts';
import type { PodSettings } from './manifests.ts';

/** What `PersistentRoots` works with. */
interface PersistentRootsParts {
  client: ClusterClient;
  templates: SandboxTemplates;
  settings: PodSettings;
  log: Log;
}

/**
 * Which templates have a persistent root here. The cluster is asked by a Pod that it checks and does not make: what it
 * forbids, or does not know of, is the reason why only the volume of such sandboxes persists.
 */
export class PersistentRoots {
  /** The templates as they are here. */
  readonly templates: SandboxTemplates;
  readonly #templates: Map<string, SandboxTemplate>;
  readonly #parts: PersistentRootsParts;

  constructor(parts: PersistentRootsParts) {
    this.#parts = parts;
    this.#templates = new Map(parts.templates);
    this.templates = this.#templates;
  }

  /** The templates as if none had a persistent root. */
  withoutRoots(): SandboxTemplates {
    const plain = [...this.#templates].map(
      ([name, each]) => [name, { ...each, persistent_root: false }] as const,
    );
    return new Map(plain);
  }

  /** Asks the cluster; a phrase for each template whose root does not persist although it should. Throws StartError. */
  async check(): Promise<string[]> {
    const limitations: string[] = [];
    for (const [name, template] of this.#templates) {
      if (!template.persistent_root) continue;
      const why = await this.#whyNot(template);
      if (why === null) continue;
      this.#templates.set(name, { ...template, persistent_root: false });
      const limitation = `only the volume of the template ${name} persists: ${why}`;
      limitations.push(limitation);
      this.#parts.log.warn({ limitation }, 'the cluster lacks something');
    }
    return limitations;
  }

  async #whyNot(template: SandboxTemplate): Promise<string | null> {
    const { client, settings } = this.#parts;
    const { pod, refusal } = await dryRun(client, template, settings).catch((error: Error) => {
      throw new StartError(`--runtime kubernetes: ${error.message}`, 1, error);
    });
    if (pod !== null) return hasUserNamespace(pod) ? null : NO_USER_NAMESPACES;
    // A namespace that is full today is not one that forbids it.
    return isQuota(refusal) ? null : refusal;
  }
}

/** What is said where a cluster has dropped what makes a Pod harmless to its node. */
export const NO_USER_NAMESPACES = 'the cluster has no user namespaces for Pods';

/** Whether a Pod that asked for it has a user namespace: an old cluster drops fields that it does not know. */
export function hasUserNamespace(pod: Pod): boolean {
  return pod.spec.hostUsers === false;
}
