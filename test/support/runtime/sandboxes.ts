import { existsSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { hierarchyOf, unifiedMountPoint } from '../../../src/base/linux/cgroup.ts';
import { createLog } from '../../../src/base/log.ts';
import { requestDaemon } from '../../../src/runtime/control-client.ts';
import { SandboxDisks } from '../../../src/runtime/disk/sandbox-disks.ts';
import {
  CONTROLLERS,
  type ResourceGroupOptions,
  ResourceGroups,
} from '../../../src/runtime/limits/resource-groups.ts';
import { markOf } from '../../../src/runtime/local/host-process.ts';
import { LocalRuntime } from '../../../src/runtime/local/local-runtime.ts';
import { builtProgram, ProgramCopies } from '../../../src/runtime/local/program.ts';
import { SandboxFiles } from '../../../src/runtime/local/sandbox-files.ts';
import type { LocalNetworks } from '../../../src/runtime/networks/local-networks.ts';
import { UnmeteredNetworks, unmetered } from '../../../src/runtime/networks/unmetered-networks.ts';
import type { Runtime, RuntimeSpec, UndeliveredRecord } from '../../../src/runtime/runtime.ts';
import { Bubblewrap } from '../../../src/runtime/walls/bubblewrap.ts';
import { NoIsolation } from '../../../src/runtime/walls/no-isolation.ts';
import { needsIsolation } from '../rights.ts';
import { scratchFolder } from '../scratch.ts';

export const SECRET = 'whsec_a2V5IG1hZGUgZm9yIHRoaXMgdGVzdA==';
export const RECORD_KEY = 'a7'.repeat(32);
/** What the manager believes records by. */
export const TRUST = { team_id: 'team_1', webhook_secret: SECRET, record_key: RECORD_KEY };

/** Where the consumers of tests are. */
export const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** One copy of the daemon's program for all tests of a file. */
export const program_dir = mkdtempSync(join(tmpdir(), 'sandboxd-test-'));
afterAll(() => rmSync(program_dir, { recursive: true, force: true }));

/** The group that holds the groups of the sandboxes in a folder: tests at the same time use the same sandbox ids. */
export function groupParent(data_dir: string): string {
  return `sandbox-manager-test-${markOf(data_dir).slice(0, 16)}`;
}

/** Control groups of the test's own, gone with the test. */
export function testGroups(data_dir: string, options: ResourceGroupOptions = {}): ResourceGroups {
  const parent = groupParent(data_dir);
  onTestFinished(() => {
    for (const controller of CONTROLLERS) {
      const folder = join(hierarchyOf(controller)?.mount ?? '/nowhere', parent);
      if (existsSync(folder)) rmdirSync(folder);
    }
    const frozen = join(unifiedMountPoint() ?? '/nowhere', parent);
    if (existsSync(frozen)) rmdirSync(frozen);
  });
  return ResourceGroups.open({ parent, ...options });
}

export interface Ran {
  exit_code: number;
  output: { stdout: string; stderr: string };
}

/** Real sandboxes below a folder of the test's own; nothing of them is left when the test has ended. */
export class Sandboxes {
  readonly data_dir: string;
  readonly runtime: LocalRuntime;

  constructor(data_dir: string, runtime: LocalRuntime) {
    this.data_dir = data_dir;
    this.runtime = runtime;
  }

  static async open(
    kind: 'local' | 'local-unsafe' = 'local',
    data_dir = join(scratchFolder(), 'data'),
    webhook_cidrs = LOOPBACK,
    limits: ResourceGroupOptions = {},
    networks: LocalNetworks = new UnmeteredNetworks(unmetered(null)),
    machine: { path?: string; disks?: SandboxDisks } = {},
  ) {
    if (kind === 'local') needsIsolation();
    const programs = new ProgramCopies(program_dir, builtProgram());
    const isolation = kind === 'local' ? new Bubblewrap(programs, machine.path) : new NoIsolation(programs);
    const log = createLog('silent');
    const groups = testGroups(data_dir, limits);
    const disks = machine.disks ?? new SandboxDisks(kind === 'local' ? null : 'not isolated');
    const parts = {
      data_dir,
      disks,
      isolation,
      programs,
      groups,
      networks,
      webhook_cidrs,
      clock: systemClock,
      log,
    };
    const runtime = new LocalRuntime(parts);
    await runtime.start();
    await runtime.takeOver();
    onTestFinished(async () => {
      await runtime.stop();
      for (const sandbox_id of await runtime.list()) await runtime.remove(sandbox_id);
    });
    return new Sandboxes(data_dir, runtime);
  }

  /** What the sandbox's own API answers. */
  // biome-ignore lint/suspicious/noExplicitAny: what the API answers is what a test looks at.
  async ask(sandbox_id: string, method: string, path: string, body?: object): Promise<any> {
    const answer = await requestDaemon(() => this.runtime.connect(sandbox_id), {
      method,
      path,
      within_ms: 30_000,
      ...(body ? { body } : {}),
    });
    if (answer.outcome === 'unreachable' || answer.error) throw new Error(JSON.stringify(answer));
    return answer.data;
  }

  /** Runs a command in a sandbox to its end. */
  run(sandbox_id: string, shell: string): Promise<Ran> {
    return this.ask(sandbox_id, 'POST', '/processes?wait_ms=20000', { shell });
  }

  /** Its standard output, trimmed; throws where it failed. */
  async output(sandbox_id: string, shell: string): Promise<string> {
    const { exit_code, output } = await this.run(sandbox_id, shell);
    if (exit_code !== 0) throw new Error(`${shell} ended with ${exit_code}: ${output.stderr}`);
    return output.stdout.trim();
  }

  rootfs(sandbox_id: string, path: string): string {
    return join(this.files(sandbox_id).rootfs, path);
  }

  files(sandbox_id: string): SandboxFiles {
    return new SandboxFiles(this.data_dir, -1, sandbox_id);
  }
}

export function spec(sandbox_id: string, given: Partial<RuntimeSpec> = {}): RuntimeSpec {
  return {
    sandbox_id,
    team_id: 'team_1',
    template_id: 'default',
    note: '',
    webhook: null,
    env: {},
    record_key: RECORD_KEY,
    memory_mib: 512,
    cpu_millis: 1000,
    disk_mib: 1024,
    network_mode: 'allow-all',
    bandwidth: {
      egress_bandwidth_bytes_per_second: 0,
      ingress_bandwidth_bytes_per_second: 0,
      bandwidth_burst_bytes: 0,
    },
    ...given,
  };
}

export function webhook(url: string, watch_dir: string | null = null) {
  return {
    webhook: { url, secret: SECRET, watch_dir, watch_ignore: [], events: null, retry: 'transient' as const },
  };
}

/** Everything that a hand-over gives. */
export async function undeliveredRecord(
  runtime: Runtime,
  sandbox_id: string,
): Promise<{ records: UndeliveredRecord[]; lost: number; set_aside: number }> {
  const records: UndeliveredRecord[] = [];
  let lost = 0;
  let set_aside = 0;
  for await (const page of runtime.handOver(sandbox_id, TRUST)) {
    records.push(...page.records);
    lost += page.lost_records;
    set_aside += page.set_aside;
  }
  return { records, lost, set_aside };
}
