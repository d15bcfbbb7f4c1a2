import { runTime } from '../../base/clock.ts';
import type { ProcStat } from '../../base/linux/procfs.ts';
import type { ResourceUsage } from '../../contract/field.ts';
import type { ProcessContext } from '../context.ts';
import type { TimerSet } from '../pausable-timer.ts';
import type { ProcessRecord } from '../record.ts';
import type { Run } from '../run.ts';
import { terminateTree } from './terminate-tree.ts';
import { rootByTag, type TreeRoot } from './tree.ts';
import { NO_USAGE, usageOf } from './usage.ts';

/** The process tree of a supervised process: that of its present or last run. */
export class ProcessTree {
  readonly #context: ProcessContext;
  /** The tree of a run whose end an earlier daemon saw. */
  readonly #former_root: TreeRoot;
  #run: Run | null = null;
  #usage: ResourceUsage = NO_USAGE;

  constructor(context: ProcessContext, record: ProcessRecord) {
    this.#context = context;
    this.#former_root = formerRoot(record, context.boot_id);
  }

  /** The last run that this daemon started or took over; null if there is none. */
  get run(): Run | null {
    return this.#run;
  }

  /** The root of the last run's tree. */
  get root(): TreeRoot {
    return this.#run?.root ?? this.#former_root;
  }

  /** Makes `run` the present run. */
  follow(run: Run): void {
    this.#run = run;
    this.#usage = NO_USAGE;
  }

  /** Notes a signal that was requested for the present run: an end by it is not a crash. */
  readonly onSignal = (signal: string): void => {
    this.#run?.requested_signals.add(signal);
  };

  /**
   * What the tree uses now, or what was measured last. `members` spares a read of the kernel's process table.
   * `is_gone`: nothing is left of the tree, so only its CPU time is given.
   */
  async usage(is_gone: boolean, members?: readonly ProcStat[]): Promise<ResourceUsage> {
    if (is_gone) return { ...NO_USAGE, cpu_ms: this.#usage.cpu_ms };
    const found = members ?? (await this.#context.trees.find([this.root]).catch(() => null))?.[0];
    if (!found) return this.#usage;
    const usage = usageOf(found);
    this.#usage = { ...usage, cpu_ms: Math.max(usage.cpu_ms, this.#usage.cpu_ms) };
    return this.#usage;
  }

  /**
   * Ends the tree, SIGTERM first and SIGKILL after `grace_ms`, measured by `timing`. Gives whether the tree is empty.
   */
  terminate(grace_ms: number, timing?: Pick<TimerSet, 'limit'>): Promise<boolean> {
    const { clock, trees } = this.#context;
    const target = {
      members: async () => (await trees.find([this.root]))[0] ?? [],
      stillThere: trees.stillThere,
      group: () => (this.root.ended_ticks === null ? this.root.pid : null),
      onSignal: this.onSignal,
      leader_ended: this.#run?.ended ?? Promise.resolve(),
      after: (delay_ms: number, run: () => void) =>
        timing ? timing.limit(delay_ms, run) : runTime(clock).after(delay_ms, run),
      isPaused: this.#context.isPaused,
    };
    return terminateTree(clock, target, grace_ms);
  }
}

function formerRoot({ mark, run }: ProcessRecord, boot_id: string): TreeRoot {
  if (run?.boot_id !== boot_id) return rootByTag(mark); // the pid means nothing after a restart of the machine
  const { pid, start_ticks, ended_ticks = 0 } = run;
  return { pid, start_ticks, tag: mark, ended_ticks, proven: new Map() };
}
