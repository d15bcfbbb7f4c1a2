import { inParallel } from '../../base/in-parallel.ts';
import type { Log } from '../../base/log.ts';
import type { NetworkRuntime } from '../../network/network-runtime.ts';
import { isProcessAlive, type ProcessIdentity } from '../local/host-process.ts';
import { type MeteredCounts, NO_COUNTS } from './metered-usage.ts';
import type { NetworkRecord, NetworkRecords } from './network-record.ts';
import type { NetworkSources } from './sandbox-networks.ts';

const AT_ONCE = 8;

/** What a `TakeOver` works with. */
export interface TakeOverParts {
  network: NetworkRuntime;
  records: NetworkRecords;
  sources: NetworkSources;
  /** This manager. */
  self: ProcessIdentity;
  log: Log;
}

/**
 * Keeps the networks of a data directory with living managers, of which there may be several on the machine: those of a
 * dead one are taken over, those that another has taken or removed are let go, and those of sandboxes that are gone are
 * removed.
 */
export class TakeOver {
  readonly #parts: TakeOverParts;
  /** What earlier managers counted of the sandboxes taken over. */
  readonly #before = new Map<string, MeteredCounts>();
  /** Sandboxes taken over since the last run: another manager may have done so at the same moment. */
  #disputed = new Set<string>();
  /** Sandboxes whose trouble is logged. */
  readonly #troubled = new Set<string>();

  constructor(parts: TakeOverParts) {
    this.#parts = parts;
  }

  /** What earlier managers counted of a sandbox that this one meters. */
  countedBefore(sandbox_id: string): MeteredCounts {
    return this.#before.get(sandbox_id) ?? NO_COUNTS;
  }

  /** Forgets a sandbox that is removed. */
  forget(sandbox_id: string): void {
    this.#before.delete(sandbox_id);
    this.#troubled.delete(sandbox_id);
    this.#disputed.delete(sandbox_id);
  }

  /** Brings everything up to date once. What fails is tried again with the next run. */
  async run(): Promise<void> {
    const { network, records } = this.#parts;
    const present = new Set(network.list());
    const attached = new Set(network.attached);
    await this.#settle();
    for (const sandbox_id of attached) {
      if (!present.has(sandbox_id)) await this.#release(sandbox_id);
      else if (!records.exists(sandbox_id)) await this.#remove(sandbox_id);
    }
    const others = [...present].filter((sandbox_id) => !attached.has(sandbox_id));
    await inParallel(others, AT_ONCE, (sandbox_id) => this.#look(sandbox_id));
  }

  /** Lets those go that another manager took over at the same moment, and wrote down later. */
  async #settle(): Promise<void> {
    const { records, self } = this.#parts;
    const disputed = this.#disputed;
    this.#disputed = new Set();
    for (const sandbox_id of disputed) {
      const record = records.read(sandbox_id);
      if (record === null) continue;
      const { manager } = record;
      if (manager === null) records.update(sandbox_id, { manager: self });
      else if (!isSame(manager, self)) await this.#release(sandbox_id);
    }
  }

  async #release(sandbox_id: string): Promise<void> {
    await this.#parts.network.release(sandbox_id);
    this.forget(sandbox_id);
  }

  async #remove(sandbox_id: string): Promise<void> {
    await this.#parts.network.detach(sandbox_id);
    this.forget(sandbox_id);
    this.#parts.log.info({ sandbox_id }, 'removed the network of a sandbox that is gone');
  }

  async #look(sandbox_id: string): Promise<void> {
    const { records, log } = this.#parts;
    try {
      const record = records.read(sandbox_id);
      if (record === null) {
        await this.#remove(sandbox_id);
      } else if (record.manager === null || !(await isProcessAlive(record.manager))) {
        await this.#take(sandbox_id, record);
      }
      this.#troubled.delete(sandbox_id);
    } catch (error) {
      if (!this.#troubled.has(sandbox_id))
        log.warn({ err: error, sandbox_id }, "a sandbox's network cannot be taken over");
      this.#troubled.add(sandbox_id);
    }
  }

  async #take(sandbox_id: string, { team_id, bandwidth, counted }: NetworkRecord): Promise<void> {
    const { network, records, sources, self } = this.#parts;
    if (!(await sources.isRecorded(sandbox_id))) return;
    const team_limits = await sources.limitsOf(team_id);
    records.update(sandbox_id, { manager: self });
    this.#before.set(sandbox_id, counted);
    try {
      const pid = await records.daemonPid(sandbox_id);
      await network.takeOver({ sandbox_id, team_id, bandwidth, team_limits }, pid);
      this.#disputed.add(sandbox_id);
    } catch (error) {
      this.#before.delete(sandbox_id);
      const now = records.read(sandbox_id);
      if (now?.manager && isSame(now.manager, self)) records.update(sandbox_id, { manager: null });
      throw error;
    }
  }
}

function isSame(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.pid === other.pid && one.start_ticks === other.start_ticks && one.boot_id === other.boot_id;
}
