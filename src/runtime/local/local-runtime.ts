import { constants, existsSync, mkdirSync, openSync, readdirSync, realpathSync } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Metric } from '../../base/metrics.ts';
import { PAUSED_MEMORY_MIB, SANDBOX_SIZE_MIN_MIB } from '../../contract/defaults.ts';
import { ApiError, StartError } from '../../contract/errors.ts';
import { connectControl } from '../control-client.ts';
import type { SandboxDisks } from '../disk/sandbox-disks.ts';
import type { Carrier } from '../egress/carrier.ts';
import { Egress } from '../egress/egress.ts';
import type { ResourceGroups } from '../limits/resource-groups.ts';
import { flowMetrics } from '../networks/flow-metrics.ts';
import type { LocalNetworks } from '../networks/local-networks.ts';
import type { SandboxNetworks } from '../networks/sandbox-networks.ts';
import { PoolMetrics } from '../pool-metrics.ts';
import type {
  Fence,
  ForkFences,
  HandOverTrust,
  KeptSandbox,
  Liveness,
  MadeSandbox,
  Runtime,
  RuntimeChange,
  RuntimeEnd,
  RuntimeFork,
  RuntimeSpec,
  RuntimeState,
  UndeliveredPage,
} from '../runtime.ts';
import { stepsOf } from '../steps.ts';
import type { Isolation } from '../walls/isolation.ts';
import { SandboxUsers } from '../walls/sandbox-users.ts';
import { DataDir } from './data-dir.ts';
import { LocalNode } from './local-node.ts';
import type { ProgramCopies } from './program.ts';
import {
  inspectSandbox,
  isLost,
  keptSandboxOf,
  livenessOf,
  readLifecycle,
  replaceEnvironment,
  setSandboxPaused,
  updateRecord,
} from './running-sandbox.ts';
import { SandboxBuilder } from './sandbox-builder.ts';
import { SandboxEnder } from './sandbox-ender.ts';
import { type LocalRecord, SandboxFiles } from './sandbox-files.ts';
import { DamagedOutboxes, undeliveredOf } from './undelivered.ts';

const SANDBOX_ID = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$/;

/** What a `LocalRuntime` works with. */
export interface LocalRuntimeParts {
  /** Created if missing; holds one directory for each sandbox. */
  data_dir: string;
  isolation: Isolation;
  programs: ProgramCopies;
  groups: ResourceGroups;
  disks: SandboxDisks;
  networks: LocalNetworks;
  /** Ranges that webhooks of sandboxes may reach in addition to public addresses. */
  webhook_cidrs: string[];
  clock: Clock;
  log: Log;
}

/**
 * Sandboxes on this machine: each has a directory with a root file system, a daemon and its processes. They outlive
 * this program; all state is on disk. Source: contract section 7, `--runtime local`.
 *
 * `LocalRecord.state`, the only state machine here, is read from disk with every call:
 *
 * | state      | entered                                   | left                                             |
 * |------------|-------------------------------------------|--------------------------------------------------|
 * | `creating` | `create`, `fork`: before the daemon starts | `created` once it is initialised; else removed   |
 * | `created`  | the daemon has identity and webhook        | `ending`, or `ended` if the daemon has died       |
 * | `ending`   | `end`: before the daemon is asked to stop  | `ended` once nothing of the sandbox runs          |
 * | `ended`    | nothing of the sandbox runs                | `remove` deletes the directory with the record    |
 */
export class LocalRuntime implements Runtime {
  /** See `Runtime`. */
  readonly cluster_id = 'local';
  readonly summary: string;
  readonly runs_sandboxes = true;
  readonly node: LocalNode;
  readonly place: DataDir;
  readonly networks: SandboxNetworks;
  readonly #parts: LocalRuntimeParts;
  readonly #builder: SandboxBuilder;
  readonly #ender: SandboxEnder;
  readonly #damaged: DamagedOutboxes;
  readonly #egress: Egress;
  #data_dir: string;
  #data_dir_fd = -1;

  constructor(parts: LocalRuntimeParts) {
    this.#parts = parts;
    this.summary = parts.isolation.summary;
    this.node = new LocalNode(parts.data_dir);
    this.place = new DataDir(parts.data_dir);
    this.networks = parts.networks;
    this.#damaged = new DamagedOutboxes(parts.data_dir, parts.clock, parts.log);
    this.#ender = new SandboxEnder({ ...parts, damaged: this.#damaged });
    this.#egress = new Egress(parts);
    this.#builder = new SandboxBuilder({
      ...parts,
      users: new SandboxUsers(parts.isolation, () => this.#records()),
      openEgress: (files, record) => this.#openEgress(files, record),
      remove: (files) => this.#remove(files),
    });
    this.#data_dir = parts.data_dir;
  }

  /** See `Egress`. */
  carryBy(carrier: Carrier): void {
    this.#egress.carryBy(carrier);
  }

  /** Prepares the data directory and the daemon's program. Throws StartError if sandboxes cannot run here. */
  async start(): Promise<void> {
    const { data_dir, isolation, disks, networks, programs, clock, log } = this.#parts;
    try {
      mkdirSync(data_dir, { recursive: true, mode: 0o700 });
      this.#openDirectory();
    } catch (error) {
      throw new StartError(`--data-dir ${data_dir}: ${(error as Error).message}`);
    }
    this.#damaged.prune();
    await isolation.check();
    await disks.check(this.#data_dir);
    await networks.start(this.#data_dir);
    for (const limitation of this.limitations()) log.warn({ limitation }, 'a wall or limit is missing');
    const used = new Set(this.#records().flatMap((record) => record?.program_version ?? []));
    programs.prune(used, clock.wallMs());
    // Copy the program now, not with the first claim: it is a hundred megabytes.
    programs.installed(programs.version());
  }

  #openDirectory(): void {
    this.#data_dir = realpathSync(this.#parts.data_dir);
    this.#data_dir_fd = openSync(this.#data_dir, constants.O_RDONLY | constants.O_DIRECTORY);
  }

  /** Stops sending webhooks of sandboxes; a later start goes on. The sandboxes keep running. Idempotent. */
  async stop(): Promise<void> {
    this.#egress.stop();
  }

  /** What the machine's isolation, control groups and networks do without. */
  limitations(): string[] {
    const { isolation, groups, disks, networks } = this.#parts;
    const of_groups = [
      ...groups.limitations(isolation.hasUsers()),
      ...groups.shortages(SANDBOX_SIZE_MIN_MIB),
    ];
    return [...isolation.limitations(), ...of_groups, ...disks.limitations(), ...networks.limitations()];
  }

  /** Pools are all zero: no sandboxes wait for claims. */
  metrics(): Metric[] {
    return [...new PoolMetrics().metrics(), ...flowMetrics(() => this.#parts.networks.flowTable())];
  }

  /** Always empty: there are no templates. */
  resourcesOf(_template_id: string) {
    return {};
  }

  /**
   * Mounts the disks that the machine, or a manager in a mount namespace of its own, has lost. The ways of webhooks are
   * opened as their sandboxes are looked at, which those without a record are not.
   */
  async takeOver(): Promise<void> {
    for (const sandbox_id of await this.list()) {
      const files = this.#files(sandbox_id);
      const why = await this.#parts.disks.attach(files);
      if (why !== null) this.#parts.log.error({ sandbox_id, why }, "a sandbox's disk cannot be mounted");
    }
  }

  /** Creates a sandbox; the same spec again confirms it. Errors as in `SandboxBuilder.create`. */
  async create(spec: RuntimeSpec, fence?: Fence): Promise<MadeSandbox> {
    await this.#builder.create(this.#files(spec.sandbox_id), spec, fence);
    return this.#made(spec.sandbox_id);
  }

  #made(sandbox_id: string): MadeSandbox {
    return { pod_name: `local-${sandbox_id}`, persistence: this.#parts.isolation.hasRoots() ? 'root' : null };
  }

  /** Freezes a sandbox; resolves once `sandbox.paused` is committed. */
  async pause(...[id, reason, fence, memory]: Parameters<Runtime['pause']>): Promise<RuntimeChange> {
    return setSandboxPaused(this.#files(id), true, reason, this.#parts, fence, memory);
  }

  /** Unfreezes a sandbox; resolves once `sandbox.resumed` is committed. */
  async resume(...[id, reason, fence, memory]: Parameters<Runtime['resume']>): Promise<RuntimeChange> {
    return setSandboxPaused(this.#files(id), false, reason, this.#parts, fence, memory);
  }

  /** What it was bounded to when it was paused; what a copy is going to be bounded to. */
  heldMib(sandbox_id: string): number | null {
    const record = this.#files(sandbox_id).readRecord();
    return record === null ? PAUSED_MEMORY_MIB : (record.held_mib ?? null);
  }

  /** Creates a paused copy of a living sandbox under the identity of `child`. Errors as in `SandboxBuilder.copy`. */
  async fork(source_id: string, child: RuntimeSpec, fences?: ForkFences): Promise<RuntimeFork> {
    const source = this.#files(source_id);
    const life = await livenessOf(source.readRecord());
    if (life !== 'alive') return { outcome: life };
    await this.#builder.copy(source, this.#files(child.sandbox_id), child, fences);
    return { outcome: 'created', ...this.#made(child.sandbox_id) };
  }

  /** Changes memory (MiB, at once) and environment (of later processes). Throws what the daemon refuses. */
  async change(
    sandbox_id: string,
    { env, memory_mib }: { env?: Record<string, string>; memory_mib?: number },
    fence?: Fence,
  ): Promise<RuntimeChange> {
    const files = this.#files(sandbox_id);
    const begin = stepsOf(fence, () => files.takenBy());
    const record = files.readRecord();
    if (record === null) return 'unknown';
    if (await isLost(record)) return 'lost';
    if (memory_mib !== undefined) {
      await begin('limit the memory');
      // What a paused one holds is charged for it, whatever it leases.
      const held_mib = record.is_paused && record.held_mib ? Math.min(record.held_mib, memory_mib) : null;
      this.#parts.groups.limit(sandbox_id, { ...record, memory_mib: held_mib ?? memory_mib });
      updateRecord(files, { memory_mib, held_mib });
    }
    if (env === undefined) return 'done';
    await begin('replace the environment');
    return replaceEnvironment(files, env);
  }

  /** See `readLifecycle`. */
  async lifecycle(...[sandbox_id, trust, after]: Parameters<Runtime['lifecycle']>) {
    return readLifecycle(this.#files(sandbox_id), trust, after);
  }

  /** See `SandboxEnder.end`. */
  async end(sandbox_id: string, fence?: Fence): Promise<RuntimeEnd> {
    const ended = await this.#ender.end(this.#files(sandbox_id), fence);
    this.#egress.close(sandbox_id);
    return ended;
  }

  /** See `undeliveredOf`. */
  async *handOver(sandbox_id: string, trust: HandOverTrust, fence?: Fence): AsyncGenerator<UndeliveredPage> {
    yield* undeliveredOf(this.#files(sandbox_id), trust, this.#parts, fence);
  }

  /** See `SandboxEnder.remove`. */
  async remove(sandbox_id: string, fence?: Fence): Promise<void> {
    await this.#remove(this.#files(sandbox_id), fence);
  }

  /** Notes the number in the sandbox's folder. */
  async fenceOff(sandbox_id: string, number: number): Promise<void> {
    this.#files(sandbox_id).noteTaken(number);
  }

  async #remove(files: SandboxFiles, fence?: Fence): Promise<void> {
    await this.#ender.remove(files, fence);
    this.#egress.close(files.sandbox_id);
  }

  /** Opens the way of a created sandbox's webhooks, if they leave through the manager. Idempotent. */
  #openEgress({ sandbox_id, socket_address }: SandboxFiles, { state, webhook_authority }: LocalRecord): void {
    if (state !== 'created') return;
    this.#egress.open({ sandbox_id, socket_address, webhook_authority: webhook_authority ?? null });
  }

  /** The sandbox's state, as its daemon answers. */
  async inspect(sandbox_id: string): Promise<RuntimeState> {
    return inspectSandbox(this.#files(sandbox_id));
  }

  /** Whether the sandbox's daemon is alive, according to the kernel. */
  async liveness(sandbox_id: string): Promise<Liveness> {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    const life = await livenessOf(record);
    if (record === null || life !== 'alive') return life;
    files.trimLog();
    // Another manager may have made the sandbox, and may have died since.
    this.#openEgress(files, record);
    return life;
  }

  /** A new connection to the daemon's control socket. */
  async connect(...[sandbox_id]: Parameters<Runtime['connect']>) {
    return connectControl(this.#files(sandbox_id).socket_address);
  }

  /** Whether the sandbox has a network namespace of its own. */
  hasOwnPorts(sandbox_id: string): boolean {
    return this.#files(sandbox_id).readRecord()?.has_own_network === true;
  }

  /** The ids of all sandboxes that have a directory. */
  async list(): Promise<string[]> {
    return this.#ids();
  }

  /** From the sandbox's record. */
  async kept(sandbox_id: string): Promise<KeptSandbox | null> {
    const files = this.#files(sandbox_id);
    const record = files.readRecord();
    if (record === null && !existsSync(files.directory)) return null;
    return keptSandboxOf(files, record, this.#made(sandbox_id));
  }

  /** See `Runtime`. The network of a sandbox is taken over again once it is recorded. */
  async closeOff(sandbox_id: string): Promise<void> {
    this.#egress.close(sandbox_id);
    await this.networks.closeOff(sandbox_id);
  }

  #ids(): string[] {
    return readdirSync(this.#data_dir).filter((name) => SANDBOX_ID.test(name));
  }

  #records(): (LocalRecord | null)[] {
    return this.#ids().map((sandbox_id) => this.#files(sandbox_id).readRecord());
  }

  #files(sandbox_id: string): SandboxFiles {
    if (this.#data_dir_fd < 0) this.#openDirectory();
    if (!SANDBOX_ID.test(sandbox_id)) throw new ApiError('not_found', 'There is no such sandbox.');
    return new SandboxFiles(this.#data_dir, this.#data_dir_fd, sandbox_id);
  }
}
