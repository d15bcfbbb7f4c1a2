import { kernelRandom } from '../base/entropy.ts';
import type { ProcStat } from '../base/linux/procfs.ts';
import { PROCESS_PAGE_BYTES, PROCESSES_LIVE_MAX } from '../contract/defaults.ts';
import { ApiError } from '../contract/errors.ts';
import type { ResourceUsage } from '../contract/field.ts';
import type { ProcessView } from '../contract/processes.ts';
import { PROCESS_STATES, type ProcessState } from '../contract/words.ts';
import type { SupervisedProcess } from './process.ts';
import type { ProcessRecord } from './record.ts';
import type { TreeFinder } from './tree/tree.ts';
import { NO_USAGE, sumUsage } from './tree/usage.ts';

/** What a process takes in a page besides its texts. */
const VIEW_COST_BYTES = 512;

interface Entry {
  fingerprint: string;
  process: Promise<SupervisedProcess>;
}

/** A place in the list of processes: where the process that was created then is, or was. */
export interface ListPlace {
  created_at_ms: number;
  process_id: string;
}

/** A part of the list of processes. */
export interface ProcessPage {
  processes: ProcessView[];
  /** Where the next page begins; null at the end. */
  next: ListPlace | null;
}

/**
 * The processes by id. An id is taken from the moment its start is requested; the process itself is listed once it
 * has started.
 */
export class ProcessRegistry {
  readonly #trees: TreeFinder;
  readonly #entries = new Map<string, Entry>();
  readonly #processes = new Map<string, SupervisedProcess>();
  /** The same in the order in which they were created. */
  #in_order: SupervisedProcess[] = [];

  constructor(trees: TreeFinder) {
    this.#trees = trees;
  }

  /** Every process that has started, in the order in which they were created. */
  all(): SupervisedProcess[] {
    return [...this.#in_order];
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
    this.#list(process);
    return process;
  }

  /** Adds a process that an earlier daemon left. */
  addRecovered(process: SupervisedProcess): void {
    const { process_id, fingerprint } = process.record;
    this.#entries.set(process_id, { fingerprint, process: Promise.resolve(process) });
    this.#list(process);
  }

  /** No longer lists the process; its id stays taken until `free`. */
  unlist(process_id: string): void {
    const process = this.#processes.get(process_id);
    if (!process || !this.#processes.delete(process_id)) return;
    this.#in_order.splice(this.#in_order.indexOf(process), 1);
  }

  /** Frees the id. */
  free(process_id: string): void {
    this.#entries.delete(process_id);
  }

  /** At most `limit` processes as the API gives them, those created last first, from `place` on. */
  async page(limit: number, place: ListPlace | null): Promise<ProcessPage> {
    const end = place === null ? this.#in_order.length : this.#indexOf(place);
    let begin = end;
    for (let bytes = 0; begin > 0 && end - begin < limit && bytes < PROCESS_PAGE_BYTES; begin -= 1)
      bytes += costOf((this.#in_order[begin - 1] as SupervisedProcess).record);
    const processes = this.#in_order.slice(begin, end).reverse();
    const next = begin === 0 ? null : (processes.at(-1)?.record ?? null);
    return { processes: await this.#views(processes), next };
  }

  /** The number of processes by state. */
  counts(): Record<ProcessState, number> {
    const counts = Object.fromEntries(PROCESS_STATES.map((state) => [state, 0]));
    for (const { state } of this.#in_order) counts[state] = (counts[state] ?? 0) + 1;
    return counts as Record<ProcessState, number>;
  }

  /** What all trees use together. */
  async usage(): Promise<ResourceUsage> {
    const processes = this.#in_order.filter(({ is_idle }) => !is_idle);
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

  /**
   * Throws `too_many_requests` if no further process may run. One that has ended counts until it is idle: while it has
   * an open end of a pipe, or events that wait.
   */
  checkRoom(): void {
    const starting = this.#entries.size - this.#in_order.length;
    if (starting + this.#in_order.length < PROCESSES_LIVE_MAX) return;
    const live = this.#in_order.filter(({ is_idle }) => !is_idle).length;
    if (starting + live < PROCESSES_LIVE_MAX) return;
    throw new ApiError('too_many_requests', `At most ${PROCESSES_LIVE_MAX} processes can run at once.`);
  }

  #list(process: SupervisedProcess): void {
    this.#processes.set(process.record.process_id, process);
    this.#in_order.splice(this.#indexOf(process.record), 0, process);
  }

  /** The number of processes before this place. */
  #indexOf(place: ListPlace): number {
    let [low, high] = [0, this.#in_order.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore((this.#in_order[middle] as SupervisedProcess).record, place)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  async #views(processes: readonly SupervisedProcess[]): Promise<ProcessView[]> {
    // Nothing is left of the others, and looking for members reads every process of the sandbox.
    const busy = processes.filter(({ is_idle }) => !is_idle);
    const found = await this.#members(busy);
    const members = new Map(busy.map((process, index) => [process, found[index]]));
    return Promise.all(processes.map((process) => process.view(members.get(process))));
  }

  /** The members of each tree; an empty list if they cannot be determined right now. */
  async #members(processes: readonly SupervisedProcess[]): Promise<ProcStat[][]> {
    if (processes.length === 0) return [];
    return this.#trees.look(processes.map(({ root }) => root)).catch(() => []);
  }
}

/** About what a process takes in a page, in bytes. */
function costOf({ command, cwd, request: { name = '', user = '' } }: ProcessRecord): number {
  const texts = [...command, cwd, name, user];
  return texts.reduce((bytes, text) => bytes + text.length, VIEW_COST_BYTES);
}

function isBefore(one: ListPlace, other: ListPlace): boolean {
  if (one.created_at_ms !== other.created_at_ms) return one.created_at_ms < other.created_at_ms;
  return one.process_id < other.process_id;
}
