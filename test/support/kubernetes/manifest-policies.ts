import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { NetworkPolicy } from '../../../src/runtime/kubernetes/api/objects.ts';

const FILE = new URL('../../../fixtures/deploy/kubernetes/manager/network-policies.yaml', import.meta.url);

/** The network policies of the product's manifests. */
export function manifestPolicies(): NetworkPolicy[] {
  return parseAllDocuments(readFileSync(FILE, 'utf8')).map((each) => each.toJS() as NetworkPolicy);
}
