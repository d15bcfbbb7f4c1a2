import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { scratchFolder } from '../support/scratch.ts';

vi.setConfig({ testTimeout: 60_000 });

const FOLDER = fileURLToPath(new URL('../../fixtures/deploy', import.meta.url));
/** Above it systemd no longer calls a unit OK. */
const EXPOSURE_OK_MAX = 5;
const HARDENED = ['sandboxd.service', 'sandbox-manager-records.service'];
const UNITS = readdirSync(join(FOLDER, 'systemd'));
const PODS = readdirSync(join(FOLDER, 'kubernetes')).filter((name) => name.endsWith('.yaml'));
const SCRIPTS = readdirSync(join(FOLDER, 'openrc'));

/** What the tests look at in a service of the compose file. */
interface ComposeService {
  networks: string[];
  secrets: string[];
  volumes?: string[];
  ports?: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, unknown>;
}

function run(program: string, ...args: string[]): SpawnSyncReturns<string> {
  return spawnSync(program, args, { encoding: 'utf8' });
}

function isMissing(program: string): boolean {
  const missing = run('sh', '-c', `command -v ${program}`).status !== 0;
  if (missing) console.log(`skipped, tests of fixtures/deploy: ${program} is missing`);
  return missing;
}

describe.skipIf(isMissing('systemd-analyze'))('a unit of systemd', () => {
  it.each(UNITS)('%s is one that systemd verifies', (unit) => {
    const folder = scratchFolder();
    const text = readFileSync(join(FOLDER, 'systemd', unit), 'utf8');
    // The program need not be installed here.
    writeFileSync(join(folder, unit), text.replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true'));
    const { status, stderr } = run('systemd-analyze', '--man=no', 'verify', join(folder, unit));
    expect([stderr, status]).toEqual(['', 0]);
  });

  it.each(HARDENED)('%s is OK to the security analysis of systemd', (unit) => {
    const { stdout } = run(
      'systemd-analyze',
      'security',
      '--offline=yes',
      '--no-pager',
      join(FOLDER, 'systemd', unit),
    );
    const [, exposure = '', verdict] = /exposure level for \S+: ([\d.]+) (\w+)/.exec(stdout) ?? [];
    expect(verdict).toBe('OK');
    expect(Number(exposure)).toBeLessThan(EXPOSURE_OK_MAX);
  });
});

describe.skipIf(isMissing('shellcheck'))('a script of OpenRC', () => {
  it.each(SCRIPTS)('%s has nothing that shellcheck objects to', (script) => {
    // OpenRC reads the variables (SC2034).
    const { stdout } = run('shellcheck', '--shell=sh', '--exclude=SC2034', join(FOLDER, 'openrc', script));
    expect(stdout).toBe('');
  });
});

describe.skipIf(isMissing('docker-compose'))('the compose file', () => {
  it('is one that docker-compose accepts, with all its secrets as files', () => {
    const { status, stdout, stderr } = run(
      'docker-compose',
      '--file',
      join(FOLDER, 'compose.yaml'),
      'config',
    );
    expect([stderr, status]).toEqual(['', 0]);
    expect(stdout).not.toMatch(/PASSWORD:/);
  });
});

it('the compose file defines all that it names, and no service can gain rights or write to its root', () => {
  const text = readFileSync(join(FOLDER, 'compose.yaml'), 'utf8');
  const { services, networks, volumes, secrets } = parse(text);
  expect(Object.keys(services)).toEqual(['manager', 'postgres', 'valkey']);
  const used = { networks: new Set<string>(), volumes: new Set<string>(), secrets: new Set<string>() };
  for (const [name, service] of Object.entries<ComposeService>(services)) {
    expect([name, service]).toEqual([
      name,
      expect.objectContaining({
        ...{ read_only: true, cap_drop: ['ALL'], restart: 'unless-stopped' },
        security_opt: ['no-new-privileges:true'],
      }),
    ]);
    for (const network of service.networks) used.networks.add(network);
    for (const secret of service.secrets) used.secrets.add(secret);
    for (const volume of service.volumes ?? []) used.volumes.add(volume.split(':')[0] as string);
    for (const other of Object.keys(service.depends_on ?? {}))
      expect(services[other]).toHaveProperty('healthcheck');
    // Only this machine reaches a port, and secrets are files.
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/);
    for (const [key, value] of Object.entries(service.environment ?? {}))
      if (/PASSWORD|SECRET|CONFIG/.test(key)) expect(value).toMatch(/^\/run\/secrets\//);
  }
  expect([...used.networks].sort()).toEqual(Object.keys(networks).sort());
  expect([...used.volumes].sort()).toEqual(Object.keys(volumes).sort());
  expect([...used.secrets].sort()).toEqual(Object.keys(secrets).sort());
  // It is the image that manager.Dockerfile says how to build.
  expect(readFileSync(join(FOLDER, 'manager.Dockerfile'), 'utf8')).toContain(services.manager.image);
});

describe.skipIf(isMissing('kubernetes-validate'))('a Pod', () => {
  it.each(PODS)('%s follows the schemas of Kubernetes, without an unknown field', (file) => {
    const { status, stdout, stderr } = run(
      'kubernetes-validate',
      '--strict',
      join(FOLDER, 'kubernetes', file),
    );
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('pod/')]);
  });
});

it.each(PODS)('%s: no container can gain rights or write to its root, and none is root', (file) => {
  const documents = parseAllDocuments(readFileSync(join(FOLDER, 'kubernetes', file), 'utf8'));
  const { spec } = documents.map((document) => document.toJS()).find(({ kind }) => kind === 'Pod');
  expect(spec).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true },
  });
  for (const { name, securityContext } of [...(spec.initContainers ?? []), ...spec.containers]) {
    expect([name, securityContext]).toEqual([
      name,
      expect.objectContaining({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true }),
    ]);
    expect(securityContext.capabilities.drop).toEqual(['ALL']);
    expect(securityContext.runAsUser).not.toBe(0);
  }
});
