import { kernelRandom } from '../base/entropy.ts';
import type { ProcStat } from '../base/linux/procfs.ts';
import { PROCESSES_LIVE_MAX } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/events.ts';
import type { ProcessView } from '../contract/processes.ts';
import type { ProcessRequest } from '../contract/schema/process-request.ts';
import type { SupervisedProcess } from './process.ts';
import type { TreeFinder } from './tree/tree.ts';
import { NO_USAGE, sumUsage } from './tree/usage.ts';

interface Entry {
  fingerprint: string;
  process: Promise<SupervisedProcess>;
}

/**
 * The processes by id. An id is taken from the moment its start is requested; the process itself is listed once it
 * has started.
 */
export class ProcessRegistry {
  readonly #trees: TreeFinder;
  readonly #entries = new Map<string, Entry>();
  /** Those that have started, in the order of their starts. */
  readonly #processes = new Map<string, SupervisedProcess>();

  constructor(trees: TreeFinder) {
    this.#trees = trees;
  }

  /** Every process that has started, in the order of their starts. */
  all(): SupervisedProcess[] {
    return [...this.#processes.values()];
  }

  /** The process with this id. Throws `not_found` for an unknown id. */
  get(process_id: string): SupervisedProcess {
    const process = this.#processes.get(process_id);
    if (!process) throw new ApiError('not_found', `There is no process ${process_id}.`);
    return process;
  }

  /** The process with this id, or null if none has started under it. */
  find(process_id: string): SupervisedProcess | null {
    return this.#processes.get(process_id) ?? null;
  }

  /**
   * The process that has this id or is being started under it, or null if the id is free. Throws `conflict` if the
   * id belongs to a request with another fingerprint.
   */
  findSame(process_id: string, fingerprint: string): Promise<SupervisedProcess> | null {
    const entry = this.#entries.get(process_id);
    if (!entry) return null;
    if (entry.fingerprint === fingerprint) return entry.process;
    throw new ApiError('conflict', `process_id: ${process_id} is in use by another request`, {
      field: 'process_id',
    });
  }

  /** Takes the id for a start that is under way. Rejects, and frees the id, if the start fails. */
  async addStarting(
    process_id: string,
    fingerprint: string,
    starting: Promise<SupervisedProcess>,
  ): Promise<SupervisedProcess> {
    this.#entries.set(process_id, { fingerprint, process: starting });
    starting.catch(() => this.#entries.delete(process_id));
    const process = await starting;
    this.#processes.set(process_id, process);
    return process;
  }

  /** Adds a process that an earlier daemon left. */
  addRecovered(process: SupervisedProcess, fingerprint: string): void {
    const { process_id } = process.record;
    this.#entries.set(process_id, { fingerprint, process: Promise.resolve(process) });
    this.#processes.set(process_id, process);
  }

  /** No longer lists the process; its id stays taken until `free`. */
  unlist(process_id: string): void {
    this.#processes.delete(process_id);
  }

  /** Frees the id. */
  free(process_id: string): void {
    this.#entries.delete(process_id);
  }

  /** Every process as the API gives it, in the order of their starts. */
  async views(): Promise<ProcessView[]> {
    const processes = this.all();
    // Nothing is left of the others, and looking for members reads every process of the sandbox.
    const busy = processes.filter(({ is_idle }) => !is_idle);
    const found = await this.#members(busy);
    const members = new Map(busy.map((process, index) => [process, found[index]]));
    return Promise.all(processes.map((process) => process.view(members.get(process))));
  }

  /** What all trees use together. */
  async usage(): Promise<ResourceUsage> {
    const processes = this.all().filter(({ is_idle }) => !is_idle);
    const members = await this.#members(processes);
    const usages = await Promise.all(processes.map((process, index) => process.usage(members[index])));
    return processes.length > 0 ? sumUsage(usages) : NO_USAGE;
  }

  /** Every process, once no start or restart is under way. */
  async started(): Promise<SupervisedProcess[]> {
    await Promise.allSettled([...this.#entries.values()].map(({ process }) => process));
    const processes = this.all();
    await Promise.all(processes.map((process) => process.started()));
    return processes;
  }

  /** An id that is not taken. */
  newId(): string {
    for (;;) {
      const process_id = `proc_${kernelRandom(10).toString('hex')}`;
      if (!this.#entries.has(process_id)) return process_id;
    }
  }

  /** Throws `too_many_requests` if no further process may run. */
  checkRoom(): void {
    const live = this.all().filter(({ record }) => !record.is_final).length;
    if (live < PROCESSES_LIVE_MAX) return;
    throw new ApiError('too_many_requests', `At most ${PROCESSES_LIVE_MAX} processes can run at once.`);
  }

  /** The members of each tree; an empty list if they cannot be determined right now. */
  async #members(processes: readonly SupervisedProcess[]): Promise<ProcStat[][]> {
    if (processes.length === 0) return [];
    return this.#trees.find(processes.map(({ root }) => root)).catch(() => []);
  }
}

/** A text that is equal for equal requests: the body without `process_id`, with its keys sorted. */
export function requestFingerprint(request: ProcessRequest): string {
  const { process_id: _, ...rest } = request;
  return JSON.stringify(sorted(rest));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, entry]) => [key, sorted(entry)]);
}
