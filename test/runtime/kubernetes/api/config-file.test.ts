import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { clusterAccess } from '../../../../src/runtime/kubernetes/api/config-file.ts';
import { scratchFolder } from '../../../support/scratch.ts';

function written(change: { cluster?: object; user?: object; context?: string } = {}): string {
  const path = join(scratchFolder(), 'kubeconfig');
  const content = {
    'current-context': change.context ?? 'here',
    clusters: [{ name: 'c', cluster: change.cluster ?? { server: 'https://10.0.0.1:6443/' } }],
    users: [{ name: 'u', user: change.user ?? { tokenFile: 'token' } }],
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u', namespace: 'own' } }],
  };
  writeFileSync(path, stringify(content));
  return path;
}

it('a kubeconfig gives the server, the namespace unless another is named, and the token of now', () => {
  const path = written();
  const token_file = path.replace('kubeconfig', 'token');
  writeFileSync(token_file, 'first\n');
  const access = clusterAccess(path, null);
  expect(access).toMatchObject({
    server: 'https://10.0.0.1:6443',
    namespace: 'own',
    name: 'c',
    client: null,
  });
  expect(access.token()).toBe('first');
  writeFileSync(token_file, 'second');
  expect([access.token(), clusterAccess(path, 'other').namespace]).toEqual(['second', 'other']);
});

it.each([
  [{ context: 'nowhere' }, 'has no context "nowhere"'],
  [{ cluster: { server: 'http://10.0.0.1' } }, 'names no https:// server'],
  [{ cluster: { server: 'https://c', 'insecure-skip-tls-verify': true } }, 'insecure-skip-tls-verify'],
  [{ user: {} }, 'has neither a token nor a client certificate'],
  [{ user: { exec: { command: 'aws' } } }, 'asks another program for credentials'],
  [
    { user: { 'client-certificate': 'missing.crt' } },
    'names a file of client-certificate that cannot be read',
  ],
])('of a kubeconfig with %j one line says what is wrong', (change, message) => {
  const path = written(change);
  expect(() => clusterAccess(path, null)).toThrow(message);
  expect(() => clusterAccess(path, null)).toThrow(`--kubeconfig ${path} `);
});

it('a kubeconfig that is missing, or no YAML, is told with its path', () => {
  const folder = scratchFolder();
  expect(() => clusterAccess(join(folder, 'none'), null)).toThrow(
    `--kubeconfig ${folder}/none cannot be read`,
  );
  writeFileSync(join(folder, 'bad'), '\tx: [');
  expect(() => clusterAccess(join(folder, 'bad'), null)).toThrow('cannot be read');
});

afterEach(() => vi.unstubAllEnvs());

it.each([
  [undefined, undefined, 'https://kubernetes.default.svc:443'],
  ['10.96.0.1', '443', 'https://10.96.0.1:443'],
  ['api.example.com', '6443', 'https://api.example.com:6443'],
  ['fd00::1', '443', 'https://[fd00::1]:443'],
])('in a Pod that is told %s and %s the API is at %s, with the token of now', (host, port, server) => {
  vi.stubEnv('KUBERNETES_SERVICE_HOST', host);
  vi.stubEnv('KUBERNETES_SERVICE_PORT', port);
  const account = scratchFolder();
  for (const name of ['token', 'ca.crt', 'namespace']) writeFileSync(join(account, name), `${name}\n`);
  const access = clusterAccess(null, null, account);
  expect(access).toMatchObject({ server, namespace: 'namespace', client: null });
  expect([access.token(), access.ca?.toString()]).toEqual(['token', 'ca.crt\n']);
  writeFileSync(join(account, 'token'), 'replaced\n');
  expect([access.token(), clusterAccess(null, 'other', account).namespace]).toEqual(['replaced', 'other']);
});
