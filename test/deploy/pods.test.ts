import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { eventually } from '../support/eventually.ts';
import { IMAGE, NAMESPACE, TestCluster, whyNoCluster } from '../support/kubernetes/cluster.ts';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 });

const WITHIN = { timeout: 300_000, interval: 500 };
const FOLDER = fileURLToPath(new URL('../../fixtures/deploy/kubernetes', import.meta.url));
const why_not =
  process.env.SANDBOXD_TEST_CLUSTERS === 'all' ? whyNoCluster() : 'run `npm run test:kubernetes`';
if (why_not !== null) console.log(`skipped, the Pods of fixtures/deploy on a cluster: ${why_not}`);

interface TestContainer {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
}

/** A manifest with the image of the tests in the place of its own. */
function manifest(file: string): string {
  const documents = parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map((each) => each.toJS());
  const { spec } = documents.find(({ kind }) => kind === 'Pod');
  const containers: TestContainer[] = [...(spec.initContainers ?? []), ...spec.containers];
  for (const container of containers) {
    // The image of the tests has no entrypoint, and no agent.
    container.command = container.image.startsWith('sandboxd-base') ? ['sandboxd'] : ['sleep', 'infinity'];
    container.image = IMAGE;
  }
  for (const { kind, spec: claim } of documents)
    if (kind === 'PersistentVolumeClaim') claim.accessModes = ['ReadWriteOnce'];
  return documents.map((each) => stringify(each)).join('---\n');
}

describe.skipIf(why_not !== null)('a namespace with Pod Security `restricted`', () => {
  let cluster: TestCluster;
  const kubectl = (...args: string[]) => cluster.kubectl('-n', NAMESPACE, ...args);

  beforeAll(async () => {
    cluster = await TestCluster.start();
    kubectl('create', 'secret', 'generic', 'sandboxd-webhook', '--from-literal=secret=<SIGNING_SECRET>');
  });

  afterAll(() => cluster?.stop());

  it.each(['entrypoint.yaml', 'sidecar.yaml'])('%s is admitted as it is', (file) => {
    const made = kubectl('apply', '--dry-run=server', '--output=name', '-f', join(FOLDER, file));
    expect(made).toMatch(/^pod\//m);
  });

  it.each([
    ['entrypoint.yaml', 'sandbox-1', 'sandbox'],
    ['sidecar.yaml', 'agent-1', 'agent'],
  ])('%s becomes ready, and takes an event', async (file, pod, container) => {
    const path = join(scratchFolder(), file);
    writeFileSync(path, manifest(file));
    kubectl('apply', '-f', path);
    await eventually(() => kubectl('wait', '--for=condition=Ready', `pod/${pod}`, '--timeout=10s'), WITHIN);
    const published = kubectl(
      'exec',
      pod,
      '-c',
      container,
      '--',
      'sandboxctl',
      'publish',
      '--json',
      '{"step":1}',
    );
    expect(JSON.parse(published)).toMatchObject({ event_id: expect.stringMatching(/^evt_/) });
    kubectl('delete', 'pod', pod, '--wait=true', '--timeout=120s');
  });
});
