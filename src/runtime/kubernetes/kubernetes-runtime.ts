import type { Socket } from 'node:net';
import type { Clock } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Metric } from '../../base/metrics.ts';
import { Schedule } from '../../base/schedule.ts';
import type { InjectionOption, SandboxTemplate, SandboxTemplates } from '../../contract/templates.ts';
import { lifecycleOf } from '../daemon-requests.ts';
import type { Carrier } from '../egress/carrier.ts';
import { flowMetrics } from '../networks/flow-metrics.ts';
import type { SandboxNetworks } from '../networks/sandbox-networks.ts';
import { UnmeteredNetworks } from '../networks/unmetered-networks.ts';
import { PoolMetrics } from '../pool-metrics.ts';
import type {
  Fence,
  ForkFences,
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
import { ClusterClient } from './api/cluster-client.ts';
import { clusterAccess } from './api/config-file.ts';
import { checkCluster, NETWORK_REASON } from './cluster-check.ts';
import { knownInjection } from './injection.ts';
import { Keepers } from './keepers.ts';
import type { PodSettings } from './manifests.ts';
import { PersistentRoots } from './persistent-roots.ts';
import { PodEgress } from './pod-egress.ts';
import { isUp } from './pod-state.ts';
import { Pods } from './pods.ts';
import { Pool } from './pool.ts';
import { DamagedRecord, Records } from './records.ts';
import { RunningSandboxes } from './running-sandboxes.ts';
import { KubernetesBuilder, templateOf } from './sandbox-builder.ts';
import { KubernetesEnder } from './sandbox-ender.ts';
import { VolumeClaims } from './volume-claims.ts';

/** How a `KubernetesRuntime` is configured. */
export interface KubernetesOptions {
  /** Null: the service account of the Pod that this runs in. */
  kubeconfig: string | null;
  /** Null: that of the kubeconfig or the service account. */
  namespace: string | null;
  /** The image of this product, for keepers, and for the daemon in every sandbox. */
  product_image: string;
  injection: InjectionOption;
  templates: SandboxTemplates;
  /** Ranges that webhooks of sandboxes may reach in addition to public addresses. */
  webhook_cidrs: string[];
}

/**
 * Sandboxes as Pods of a cluster, one each, with a volume that outlives the Pod. All state is in the cluster, so that any
 * replica may act; what decides is read with every call. Source: contract section 7, "Kubernetes".
 */
export class KubernetesRuntime implements Runtime {
  /** See `Runtime`. */
  readonly summary = 'sandboxes are Pods of a cluster';
  readonly runs_sandboxes = true;
  /** The cluster schedules them. */
  readonly node = null;
  /** Its sandboxes are in the cluster, which is said by its access. */
  readonly place = null;
  readonly networks: SandboxNetworks = new UnmeteredNetworks({
    mode: 'host-unmetered',
    reason: NETWORK_REASON,
    block_all: 'network_policy',
  });
  /** What the cluster is called. */
  readonly cluster_id: string;
  /** Of the pools of waiting Pods. */
  readonly pool_metrics: PoolMetrics;
  readonly #client: ClusterClient;
  readonly #templates: SandboxTemplates;
  readonly #check: () => Promise<string[]>;
  #limitations: string[] = [];
  readonly #pods: Pods;
  readonly #claims: VolumeClaims;
  readonly #records: Records;
  readonly #keepers: Keepers;
  readonly #builder: KubernetesBuilder;
  readonly #running: RunningSandboxes;
  readonly #ender: KubernetesEnder;
  readonly #egress: PodEgress;
  readonly #schedule: Schedule;

  /** Throws StartError for a kubeconfig that cannot be used. */
  constructor(options: KubernetesOptions, clock: Clock, log: Log) {
    const access = clusterAccess(options.kubeconfig, options.namespace);
    this.cluster_id = access.name;
    const client = new ClusterClient(access);
    this.#client = client;
    const pods = new Pods(client, clock);
    this.#pods = pods;
    this.#claims = new VolumeClaims(client, clock, log);
    const records = new Records(client);
    this.#records = records;
    this.#keepers = new Keepers(client, pods, records, clock);
    const { product_image, webhook_cidrs } = options;
    // What `auto` is, the cluster says at the start.
    const settings: PodSettings = { product_image, injection: knownInjection(options.injection) };
    const roots = new PersistentRoots({ client, templates: options.templates, settings, log });
    const { templates } = roots;
    this.#templates = templates;
    this.#check = async () => {
      const asked = { ...options, templates: roots.withoutRoots(), namespace: access.namespace };
      const answer = await checkCluster(client, asked, log);
      settings.injection = answer.injection;
      return [...answer.limitations, ...(await roots.check())];
    };
    const parts = { client, pods, records, keepers: this.#keepers, templates, settings, clock, log };
    this.pool_metrics = new PoolMetrics(templates);
    const pool = new Pool({ ...parts, metrics: this.pool_metrics });
    this.#schedule = new Schedule(clock, log);
    this.#schedule.add(pool);
    const ender = new KubernetesEnder(parts);
    this.#ender = ender;
    const with_pool = { ...parts, pool, webhook_cidrs };
    this.#builder = new KubernetesBuilder({ ...with_pool, remove: (id) => ender.remove(id) });
    this.#running = new RunningSandboxes(parts);
    this.#egress = new PodEgress(this.#keepers, { webhook_cidrs, clock, log });
  }

  /** Checks that the cluster answers and allows what is needed. Throws StartError. */
  async start(): Promise<void> {
    this.#limitations = await this.#check();
    this.#pods.start();
    this.#claims.start();
    await this.#schedule.start();
  }

  /** See `Egress`. */
  carryBy(carrier: Carrier): void {
    this.#egress.carryBy(carrier);
  }

  /** Nothing: the ways of webhooks are opened as their sandboxes are looked at. */
  async takeOver(): Promise<void> {}

  /** Closes its connections to the cluster; what waits in pools is left to other replicas. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all([this.#pods.stop(), this.#claims.stop(), this.#schedule.stop()]);
    this.#egress.stop();
    this.#client.close();
  }

  /** What the cluster does not enforce, or refuses; complete after `start`. */
  limitations(): string[] {
    return this.#limitations;
  }

  /** Of its pools. */
  metrics(): Metric[] {
    return [...this.pool_metrics.metrics(), ...flowMetrics()];
  }

  /** The resources that the template sets. */
  resourcesOf(template_id: string): SandboxTemplate['resources'] {
    return templateOf(template_id, this.#templates).resources;
  }

  /** Creates a sandbox; the same spec again confirms it. Errors as in `KubernetesBuilder.create`. */
  async create(spec: RuntimeSpec, fence?: Fence): Promise<MadeSandbox> {
    const made = await this.#builder.create(spec, fence);
    this.#egress.openFor(spec);
    this.#schedule.wake('pool');
    return made;
  }

  /** Stops a sandbox's processes; resolves once `sandbox.paused` is committed. The Pod keeps what it has requested. */
  async pause(...[id, reason, fence, memory]: Parameters<Runtime['pause']>): Promise<RuntimeChange> {
    return this.#running.setPaused(id, true, reason, fence, memory);
  }

  /** Continues a sandbox's processes; resolves once `sandbox.resumed` is committed. */
  async resume(...[id, reason, fence, memory]: Parameters<Runtime['resume']>): Promise<RuntimeChange> {
    return this.#running.setPaused(id, false, reason, fence, memory);
  }

  /** Its Pod keeps what it has requested. */
  heldMib(_sandbox_id: string): null {
    return null;
  }

  /** Creates a paused copy of a living sandbox's work under the identity of `child`. Errors as in `KubernetesBuilder.copy`. */
  async fork(source_id: string, child: RuntimeSpec, fences?: ForkFences): Promise<RuntimeFork> {
    const life = await this.#running.liveness(source_id);
    if (life !== 'alive') return { outcome: life };
    const made = await this.#builder.copy(source_id, child, fences);
    this.#egress.openFor(child);
    return { outcome: 'created', ...made };
  }

  /** See `RunningSandboxes.change`. */
  async change(...given: Parameters<Runtime['change']>): Promise<RuntimeChange> {
    return this.#running.change(...given);
  }

  /** See `lifecycleOf`. */
  async lifecycle(...[sandbox_id, trust, after]: Parameters<Runtime['lifecycle']>) {
    return lifecycleOf(() => this.connect(sandbox_id), { ...trust, sandbox_id }, after);
  }

  /** See `KubernetesEnder.end`. */
  async end(sandbox_id: string, fence?: Fence): Promise<RuntimeEnd> {
    const ended = await this.#ender.end(sandbox_id, fence);
    this.#egress.close(sandbox_id);
    return ended;
  }

  /** See `KubernetesEnder.handOver`. */
  async *handOver(...given: Parameters<Runtime['handOver']>): AsyncGenerator<UndeliveredPage> {
    yield* this.#ender.handOver(...given);
  }

  /** See `KubernetesEnder.remove`. */
  async remove(sandbox_id: string, fence?: Fence): Promise<void> {
    await this.#ender.remove(sandbox_id, fence);
    this.#egress.close(sandbox_id);
  }

  /** Notes the number in the sandbox's record. */
  async fenceOff(sandbox_id: string, number: number): Promise<void> {
    await this.#records.noteTaken(sandbox_id, number);
  }

  /** See `RunningSandboxes.inspect`. */
  async inspect(sandbox_id: string): Promise<RuntimeState> {
    return this.#running.inspect(sandbox_id);
  }

  /** Whether the sandbox's containers run, as their node has last said. */
  async liveness(sandbox_id: string): Promise<Liveness> {
    const name = this.#claims.nameOf(sandbox_id) ?? (await this.#records.nameOf(sandbox_id));
    const recent = await this.#pods.readRecent(name);
    if (recent === null || !isUp(recent)) return this.#running.liveness(sandbox_id);
    // Another manager may have made the sandbox, and may have died since.
    this.#egress.openTo(sandbox_id, recent.metadata);
    return 'alive';
  }

  /** A new connection to the daemon, through the keeper beside it. */
  async connect(sandbox_id: string): Promise<Socket> {
    return this.#keepers.connect(sandbox_id);
  }

  /** Always: every Pod has a network of its own. */
  hasOwnPorts(_sandbox_id: string): boolean {
    return true;
  }

  /** The ids of all sandboxes that have a volume claim in the namespace. See `VolumeClaims.ids`. */
  async list(): Promise<string[]> {
    return this.#claims.ids();
  }

  /** From the record in its volume claim; null where that is damaged, which `list` tells: others are looked at all the same. */
  async kept(sandbox_id: string): Promise<KeptSandbox | null> {
    const found = await this.#records.read(sandbox_id).catch((error) => {
      if (error instanceof DamagedRecord) return null;
      throw error;
    });
    if (found === null) return null;
    const { record, claim } = found;
    const is_lost = record.state !== 'creating' && (await this.#running.liveness(sandbox_id)) !== 'alive';
    return {
      team_id: record.team_id,
      state:
        record.state === 'creating'
          ? 'incomplete'
          : is_lost
            ? 'ended'
            : record.is_paused
              ? 'paused'
              : 'running',
      memory_mib: record.memory_mib,
      cpu_millis: record.cpu_millis,
      held_mib: null,
      disk_mib: null,
      watch_dir: null,
      note: record.note ?? null,
      made: { pod_name: claim.name, persistence: record.persists },
    };
  }

  /** Closes the way of its webhooks where that leads through the manager; what else leaves it is the cluster's. */
  async closeOff(sandbox_id: string): Promise<void> {
    this.#egress.close(sandbox_id);
  }
}
