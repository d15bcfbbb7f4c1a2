import { runTime, sleep } from '../../base/clock.ts';
import { ApiError } from '../../contract/errors.ts';
import type { NetworkUsage } from '../../contract/sandboxes.ts';
import type { Moment } from '../database/database-clock-store.ts';
import type { ChangeRequest } from './requests.ts';
import { after, leaseOf, sealedEnv, timesOfResume } from './sandbox-row.ts';
import type { ManagedSandboxRow, SandboxChanges } from './sandbox-store.ts';
import type { SandboxServices } from './services.ts';
import type { SandboxRef, TransitionRunner } from './transition-runner.ts';
import { noSandbox, transitionError } from './transitions.ts';

const UP = ['running', 'paused'] as const;

/** How long a call waits for the sandbox that it resumes, and how often it checks. */
const RUNNING_WAIT_MS = 20_000;
const RUNNING_POLL_MS = 50;

/** What Sandboxes uses of the manager. */
type SandboxesServices = Pick<
  SandboxServices,
  'clock' | 'store' | 'runtime' | 'admission' | 'metering' | 'traffic' | 'seal'
>;

/** A sandbox that was paused or resumed. */
export type SwitchedSandbox = ManagedSandboxRow & {
  /** Whether its processes were kept. */
  memory: boolean;
};

/** Reads and transitions of existing sandboxes. Every method throws `not_found`. Source: contract section 7. */
export class Sandboxes {
  readonly #services: SandboxesServices;
  readonly #transitions: TransitionRunner;

  constructor(services: SandboxesServices, transitions: TransitionRunner) {
    this.#services = services;
    this.#transitions = transitions;
  }

  /** A team's sandbox. Of one that is deleted, the error says since when. */
  async get(named: SandboxRef): Promise<ManagedSandboxRow> {
    const row = await this.getKept(named);
    if (row.deleted_at_ms !== null) throw noSandbox(row.deleted_at_ms);
    return row;
  }

  /** A team's sandbox, also for 24 h after its deletion. */
  async getKept({ sandbox_id, team_id }: SandboxRef): Promise<ManagedSandboxRow> {
    const { store } = this.#services;
    const row = await store.findKept(store.db, sandbox_id, team_id);
    if (!row) throw noSandbox();
    return row;
  }

  /**
   * The running sandbox for a call of its process routes. A paused one with `auto_resume` is resumed first. Throws
   * `conflict` if it is not running and is not resumed, and what a resume throws. Source: contract section 7,
   * `auto_resume`.
   */
  async running(named: SandboxRef): Promise<ManagedSandboxRow> {
    const clock = runTime(this.#services.clock);
    const end_ms = clock.monotonicMs() + RUNNING_WAIT_MS;
    for (;;) {
      const row = await this.get(named);
      const { status, operation } = row;
      if (status === 'running' && operation !== 'pausing') return row;
      const may_run = row.auto_resume === 1 && (status === 'paused' || operation !== null);
      if (!may_run || status === 'terminating' || clock.monotonicMs() > end_ms) {
        throw transitionError({ refused: 'status', status });
      }
      if (operation !== null) await sleep(clock, RUNNING_POLL_MS);
      else await this.#resumeForCall(named);
    }
  }

  async #resumeForCall(named: SandboxRef): Promise<void> {
    try {
      await this.resume(named, 'auto_resume');
    } catch (error) {
      // Another call was faster.
      if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
    }
  }

  /**
   * Freezes a running sandbox, or without `memory` ends its processes; its lease ends. With `idle_by_ms`, wall time, only if
   * its idle time has ended by then. Throws `conflict` and what the runtime throws.
   */
  async pause(
    named: SandboxRef,
    reason: string | null,
    idle_by_ms: number | null = null,
    memory = true,
  ): Promise<SwitchedSandbox> {
    const { runtime, metering, traffic } = this.#services;
    let usage: NetworkUsage | null = null;
    let kept = memory;
    const row = await this.#transitions.run(named, 'pause', {
      idle_by_ms,
      has_event: true,
      carryOut: async ({ sandbox_id }, held) => {
        const paused = await runtime.pause(sandbox_id, reason, held, memory);
        kept = paused !== 'emptied';
        usage = await traffic.usage(sandbox_id);
        return paused;
      },
      changes: ({ sandbox_id }) => ({ status: 'paused', held_mib: runtime.heldMib(sandbox_id) }),
      onEnd: async (tx, { sandbox_id }, now_ms) => {
        await metering.ended(tx, sandbox_id, now_ms);
        await traffic.closed(tx, sandbox_id, usage, now_ms);
      },
    });
    return { ...row, memory: kept };
  }

  /**
   * Resumes a paused sandbox, without `memory` with none of the processes that its pause has kept; its ttl starts again.
   * Throws `conflict`, `quota_exceeded`, `capacity_exhausted`.
   */
  async resume(named: SandboxRef, reason: string | null, memory = true): Promise<SwitchedSandbox> {
    const { runtime, metering, traffic, store, admission } = this.#services;
    let kept = memory;
    const row = await this.#transitions.run(named, 'resume', {
      has_event: true,
      admit: async (tx) => {
        const row = await store.find(tx, named.sandbox_id, named.team_id);
        if (row?.status !== 'paused' || row.operation !== null) return;
        await admission.admit(tx, leaseOf(row));
      },
      carryOut: async ({ sandbox_id }, held) => {
        const resumed = await runtime.resume(sandbox_id, reason, held, memory);
        kept = resumed !== 'emptied';
        return resumed;
      },
      changes: (row, at) => ({
        status: 'running',
        held_mib: null,
        runtime_generation: row.runtime_generation + 1,
        ...timesOfResume(row, at),
      }),
      onEnd: async (tx, row, now_ms) => {
        await metering.began(tx, leaseOf(row), now_ms);
        await traffic.began(tx, row, now_ms);
      },
    });
    return { ...row, memory: kept };
  }

  /** Changes what can be changed after the claim. Throws `conflict`, `quota_exceeded`, `capacity_exhausted`. */
  async change(named: SandboxRef, request: ChangeRequest): Promise<ManagedSandboxRow> {
    const { memory_mib, env_vars } = request;
    const { runtime, store, admission, metering, seal } = this.#services;
    const changes = (row: ManagedSandboxRow, at: Moment) => changesOf(row, request, at, seal);
    if (memory_mib === undefined && env_vars === undefined) return this.#changeIdle(named, changes);
    const change = {
      ...(env_vars === undefined ? {} : { env: env_vars }),
      ...(memory_mib === undefined ? {} : { memory_mib }),
    };
    return this.#transitions.run(named, 'change', {
      admit: async (tx) => {
        const row = await store.find(tx, named.sandbox_id, named.team_id);
        if (memory_mib === undefined || row === null) return;
        const lease = { ...leaseOf(row), memory_mib };
        if (row.status === 'running') await admission.admitChange(tx, lease);
        else if (row.status === 'paused' && row.held_mib === null) await admission.admitCopy(tx, lease);
      },
      carryOut: (row, held) => runtime.change(row.sandbox_id, change, held),
      changes,
      onEnd: async (tx, row, now_ms) => {
        const is_leasing = memory_mib !== undefined && row.status === 'running';
        if (is_leasing) await metering.changed(tx, leaseOf(row), now_ms);
      },
    });
  }

  /** Restarts the ttl, or sets it to `duration_s` once. No effect on a sandbox without a ttl. Throws `conflict`. */
  async refresh(named: SandboxRef, duration_s: number | undefined): Promise<ManagedSandboxRow> {
    return this.#changeIdle(named, (row, at) =>
      row.ttl_s === 0 ? {} : { expires_at_ms: after(at, duration_s ?? row.ttl_s) },
    );
  }

  /** A change that does not involve the runtime. */
  async #changeIdle(
    { sandbox_id, team_id }: SandboxRef,
    changes: (row: ManagedSandboxRow, at: Moment) => SandboxChanges,
  ): Promise<ManagedSandboxRow> {
    const { store, clock } = this.#services;
    return store.write(async (tx) => {
      const row = await store.find(tx, sandbox_id, team_id);
      const at = clock.moment();
      const changed =
        row && (await store.changeIdle(tx, sandbox_id, UP, { ...changes(row, at), updated_at_ms: at.now }));
      if (!changed) throw transitionError(await store.whyRefused(tx, sandbox_id, team_id));
      return changed;
    });
  }
}

/** What a PUT changes in the row; a new duration counts from now. */
function changesOf(
  row: ManagedSandboxRow,
  request: ChangeRequest,
  at: Moment,
  seal: SandboxServices['seal'],
): SandboxChanges {
  const { memory, memory_mib, env_vars, ttl, hard_ttl, idle_ttl, auto_resume } = request;
  return {
    ...(memory === undefined || memory_mib === undefined
      ? {}
      : { memory_mib, resources: JSON.stringify({ ...JSON.parse(row.resources), memory }) }),
    ...(env_vars === undefined ? {} : sealedEnv(env_vars, row.sandbox_id, seal)),
    ...(ttl === undefined ? {} : { ttl_s: ttl, expires_at_ms: after(at, ttl) }),
    ...(hard_ttl === undefined ? {} : { hard_ttl_s: hard_ttl, hard_expires_at_ms: after(at, hard_ttl) }),
    ...(idle_ttl === undefined ? {} : { idle_ttl_s: idle_ttl, idle_expires_at_ms: after(at, idle_ttl) }),
    ...(auto_resume === undefined ? {} : { auto_resume: auto_resume ? 1 : 0 }),
  };
}
