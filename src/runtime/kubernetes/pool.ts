import type { Clock } from '../../base/clock.ts';
import { Deferrals } from '../../base/deferrals.ts';
import type { Log } from '../../base/log.ts';
import type { Job } from '../../base/schedule.ts';
import type { SandboxTemplates } from '../../contract/templates.ts';
import type { PoolMetrics } from '../pool-metrics.ts';
import type { RuntimeSpec } from '../runtime.ts';
import type { ClusterClient } from './api/cluster-client.ts';
import type { Meta } from './api/objects.ts';
import type { PodSettings } from './manifests.ts';
import { isSilent, isUp, podStart } from './pod-state.ts';
import type { Pods } from './pods.ts';
import { type PoolKind, PoolStore, poolKind } from './pool-store.ts';
import type { FoundRecord, KubernetesRecord, Records } from './records.ts';
import { volumeProblemOf } from './volume-trouble.ts';

/** The waits between two looks: replicas that start at once must not look at once for ever. */
const LOOK_MIN_MS = 2_000;
const LOOK_SPREAD_MS = 2_000;
/** The wait where there are no pools: only what others have left is looked for. */
const IDLE_MS = 60_000;
/** How long a Pod may take to start, image and volume included. */
const START_TIMEOUT_MS = 120_000;
/** How long it takes at most from a claim to its Pod: later, somebody has removed that, or never made it. */
const MADE_WITHIN_MS = 15_000;
/** How long the Pods of an unknown pool are left, which may be that of a replica with another config, in a rollout. */
const FOREIGN_MS = 600_000;

/** What a `Pool` works with. */
export interface PoolParts {
  client: ClusterClient;
  pods: Pods;
  records: Records;
  templates: SandboxTemplates;
  settings: PodSettings;
  metrics: PoolMetrics;
  clock: Clock;
  log: Log;
}

/** A Pod that was taken for a sandbox, and the address of its keeper. */
export interface TakenPod {
  found: FoundRecord;
  host: string;
}

/**
 * Pods that wait for claims. Every replica looks after all of them; a claim takes one with the version that it has read, so
 * that nobody else has it. Source: contract section 7, "Kubernetes".
 */
export class Pool implements Job {
  /** See `Job`. */
  readonly name = 'pool';
  readonly #parts: PoolParts;
  readonly #store: PoolStore;
  #found_kinds: PoolKind[] | null = null;
  readonly #deferrals: Deferrals;
  /** When this replica has first seen what waits: the cluster's clock is another. */
  readonly #seen_ms = new Map<string, number>();
  #is_first = true;

  constructor(parts: PoolParts) {
    this.#parts = parts;
    this.#store = new PoolStore(parts.client, parts.pods, parts.settings);
    this.#deferrals = new Deferrals(parts.clock);
  }

  /** Made when they are first needed: only then it is known what the cluster lacks for a template. */
  get #kinds(): PoolKind[] {
    const { templates, settings } = this.#parts;
    this.#found_kinds ??= [...templates].flatMap(([name, template]) =>
      template.pool === null ? [] : [poolKind(name, template, template.pool, settings)],
    );
    return this.#found_kinds;
  }

  /** Takes a Pod for a sandbox; null where none waits that is as the sandbox has to be. */
  async take(spec: RuntimeSpec, record: KubernetesRecord): Promise<TakenPod | null> {
    const kind = this.#kinds.find(({ template_name }) => template_name === spec.template_id);
    if (kind === undefined) return null;
    const taken = isServed(spec, kind) ? await this.#takeOf(kind, record) : null;
    this.#parts.metrics.claims.add([taken === null ? 'cold' : 'pool']);
    return taken;
  }

  async #takeOf({ key }: PoolKind, record: KubernetesRecord): Promise<TakenPod | null> {
    const { pods, records } = this.#parts;
    const waiting = (await this.#store.list(key)).filter(({ deletionTimestamp }) => !deletionTimestamp);
    // Replicas do not all try the same one first.
    const first = Math.floor(Math.random() * waiting.length);
    for (const entry of [...waiting.slice(first), ...waiting.slice(0, first)]) {
      const pod = await pods.read(entry.name);
      if (pod === null || !isUp(pod)) continue;
      const start = podStart(pod);
      if (start.state !== 'up') continue;
      const found = await records.take(entry, record);
      if (found !== null) return { found, host: start.host };
    }
    return null;
  }

  /** One look: what has failed or is too much is removed, and what is missing is made. */
  readonly run = async (): Promise<number> => {
    const entries = await this.#store.list(null);
    const now_ms = this.#parts.clock.monotonicMs();
    for (const { name } of entries) {
      if (!this.#seen_ms.has(name)) this.#seen_ms.set(name, now_ms);
    }
    const names = new Set(entries.map(({ name }) => name));
    for (const name of this.#seen_ms.keys()) if (!names.has(name)) this.#seen_ms.delete(name);
    const keyOf = ({ labels }: Meta) => Object.values(labels ?? {});
    for (const kind of this.#kinds) {
      await this.#tend(
        kind,
        entries.filter((entry) => keyOf(entry).includes(kind.key)),
      );
    }
    const known = new Set(this.#kinds.map(({ key }) => key));
    for (const entry of entries) {
      if (keyOf(entry).some((value) => known.has(value))) continue;
      if (this.#is_first || this.#ageMs(entry) > FOREIGN_MS) await this.#store.remove(entry);
    }
    this.#is_first = false;
    return this.#kinds.length === 0 ? IDLE_MS : LOOK_MIN_MS + Math.random() * LOOK_SPREAD_MS;
  };

  #ageMs({ name }: Meta): number {
    const now_ms = this.#parts.clock.monotonicMs();
    return now_ms - (this.#seen_ms.get(name) ?? now_ms);
  }

  async #tend(kind: PoolKind, entries: Meta[]): Promise<void> {
    const { metrics } = this.#parts;
    const { template_name, pool } = kind;
    const ready: Meta[] = [];
    const starting: Meta[] = [];
    for (const entry of entries) {
      if (entry.deletionTimestamp) {
        await this.#store.remove(entry);
        continue;
      }
      const state = await this.#stateOf(entry);
      if (state === 'ready') ready.push(entry);
      else if (state === 'starting') starting.push(entry);
      else await this.#fail(kind, entry, state.failed);
    }
    // Those that have yet to start are the first to go; by name, so that all replicas choose the same.
    const byName = (a: Meta, b: Meta) => a.name.localeCompare(b.name);
    const kept = [...ready.sort(byName), ...starting.sort(byName)];
    for (const entry of kept.slice(pool.size)) await this.#store.remove(entry);
    metrics.count(template_name, Math.min(ready.length, pool.size), starting.length);
    if (ready.length >= pool.size) this.#deferrals.forget(template_name);
    if (this.#deferrals.current().includes(template_name)) return;
    for (let count = kept.length; count < pool.size; count++) {
      try {
        await this.#store.add(kind);
      } catch (error) {
        return this.#defer(template_name, (error as Error).message);
      }
    }
  }

  /** What has become of what waits, or why it has failed. */
  async #stateOf(entry: Meta): Promise<'ready' | 'starting' | { failed: string }> {
    const { client, pods } = this.#parts;
    const age_ms = this.#ageMs(entry);
    const recent = await pods.readRecent(entry.name);
    if (recent !== null && isUp(recent) && podStart(recent).state === 'up') return 'ready';
    // What is to be removed is looked at as it is now.
    const pod = await pods.read(entry.name);
    if (pod === null) return age_ms > MADE_WITHIN_MS ? { failed: 'it was removed' } : 'starting';
    const start = podStart(pod);
    if (start.state === 'failed') return { failed: start.error.message };
    if (isSilent(pod)) return { failed: 'its node does not answer' };
    if (start.state === 'up') return 'ready';
    if (age_ms > START_TIMEOUT_MS) return { failed: 'it does not start' };
    // Most volumes are there before the second look.
    const problem = age_ms > 0 ? await volumeProblemOf(client, entry.name) : null;
    return problem === null ? 'starting' : { failed: problem.message };
  }

  async #fail({ template_name }: PoolKind, entry: Meta, reason: string): Promise<void> {
    if (!(await this.#store.remove(entry))) return;
    this.#parts.metrics.failures.add([template_name]);
    this.#defer(template_name, reason);
  }

  #defer(template_name: string, reason: string): void {
    this.#deferrals.defer(template_name);
    this.#parts.log.warn({ template: template_name, reason }, 'a Pod of a pool has failed and was removed');
  }
}

/** Whether a sandbox can be one of the Pods that wait: all else is given at its init. */
function isServed(spec: RuntimeSpec, { pool }: PoolKind): boolean {
  const { memory_mib, cpu_millis, disk_mib, network_mode } = spec;
  if (network_mode !== 'allow-all') return false;
  return memory_mib === pool.memory_mib && cpu_millis === pool.cpu_millis && disk_mib === pool.disk_mib;
}
