import { StartError } from '../../contract/errors.ts';
import type { ClusterClient } from './api/cluster-client.ts';

/**
 * What the manager cannot do without in its namespace. `fixtures/deploy/kubernetes/` grants this and, for claims with `block-all`,
 * the list of network policies, and nothing else.
 */
export const NEEDED_RIGHTS: Record<string, readonly string[]> = {
  pods: ['create', 'delete', 'get', 'list', 'watch'],
  'pods/resize': ['patch'],
  persistentvolumeclaims: ['create', 'delete', 'get', 'list', 'patch'],
  secrets: ['create', 'delete', 'get'],
  // Why a volume is not made is told nowhere else.
  events: ['list'],
};

/** Throws StartError if the namespace is missing, or with every right that the manager has not. */
export async function checkRights(client: ClusterClient, namespace: string): Promise<void> {
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
