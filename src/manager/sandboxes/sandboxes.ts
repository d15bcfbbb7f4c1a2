import type { ChangeRequest } from './change-request.ts';
import { after } from './claim-request.ts';
import { leaseOf, refusal, sealContext, type Works } from './operations.ts';
import type { SandboxRow } from './sandbox-store.ts';
import type { Changes, SandboxRef, TransitionRunner } from './transition-runner.ts';

const UP = ['running', 'paused'] as const;

/** Transitions of sandboxes that are there. Errors: `not_found`, `conflict`. Source: contract section 7. */
export class Sandboxes {
  readonly #works: Works;
  readonly #transitions: TransitionRunner;

  constructor(works: Works, transitions: TransitionRunner) {
    this.#works = works;
    this.#transitions = transitions;
  }

  async get({ sandbox_id, team_id }: SandboxRef): Promise<SandboxRow> {
    const { store } = this.#works;
    const row = await store.find(store.db, sandbox_id, team_id);
    if (!row) throw refusal({ refused: 'not_found', status: null });
    return row;
  }

  /** Freezes a sandbox; it leases nothing any more. */
  async pause(named: SandboxRef, reason: string | null): Promise<SandboxRow> {
    const { runtime, metering } = this.#works;
    return this.#transitions.run(named, 'pause', {
      carryOut: (row) => runtime.pause(row.sandbox_id, reason),
      changes: () => ({ status: 'paused' }),
      onEnd: (tx, row, now_ms) => metering.ended(tx, row.sandbox_id, now_ms),
    });
  }

  /** Lets a sandbox go on where there is room for it; its ttl begins anew. */
  async resume(named: SandboxRef, reason: string | null): Promise<SandboxRow> {
    const { runtime, metering, store, admission } = this.#works;
    return this.#transitions.run(named, 'resume', {
      admit: async (tx) => {
        const row = await store.find(tx, named.sandbox_id, named.team_id);
        if (row?.status !== 'paused' || row.operation !== null) return;
        await admission.admit(tx, leaseOf(row));
      },
      carryOut: (row) => runtime.resume(row.sandbox_id, reason),
      changes: (row, now_ms) => ({
        status: 'running',
        runtime_generation: row.runtime_generation + 1,
        expires_at_ms: after(now_ms, row.ttl_s),
      }),
      onEnd: (tx, row, now_ms) => metering.began(tx, leaseOf(row), now_ms),
    });
  }

  /** Changes what may be changed after the claim. */
  async change(named: SandboxRef, request: ChangeRequest): Promise<SandboxRow> {
    const { memory_mib, env_vars } = request;
    const { runtime, store, admission, metering, seal } = this.#works;
    const changes = (row: SandboxRow, now_ms: number) => changesOf(row, request, now_ms, seal);
    if (memory_mib === undefined && env_vars === undefined) return this.#changeIdle(named, changes);
    const change = {
      ...(env_vars === undefined ? {} : { env: env_vars }),
      ...(memory_mib === undefined ? {} : { memory_mib }),
    };
    return this.#transitions.run(named, 'change', {
      admit: async (tx) => {
        const row = await store.find(tx, named.sandbox_id, named.team_id);
        if (memory_mib === undefined || row?.status !== 'running') return;
        await admission.admitChange(tx, { ...leaseOf(row), memory_mib });
      },
      carryOut: (row) => runtime.change(row.sandbox_id, change),
      changes,
      onEnd: async (tx, row, now_ms) => {
        const is_leasing = memory_mib !== undefined && row.status === 'running';
        if (is_leasing) await metering.changed(tx, leaseOf(row), now_ms);
      },
    });
  }

  /** Gives a sandbox its ttl again, or `duration_s` once; one without a ttl stays without. */
  async refresh(named: SandboxRef, duration_s: number | undefined): Promise<SandboxRow> {
    return this.#changeIdle(named, (row, now_ms) =>
      row.ttl_s === 0 ? {} : { expires_at_ms: after(now_ms, duration_s ?? row.ttl_s) },
    );
  }

  /** A change that the runtime has no part in. */
  async #changeIdle(
    { sandbox_id, team_id }: SandboxRef,
    changes: (row: SandboxRow, now_ms: number) => Changes,
  ): Promise<SandboxRow> {
    const { store, clock } = this.#works;
    const now_ms = clock.wallMs();
    return store.write(async (tx) => {
      const row = await store.find(tx, sandbox_id, team_id);
      const changed =
        row &&
        (await store.changeIdle(tx, sandbox_id, UP, { ...changes(row, now_ms), updated_at_ms: now_ms }));
      if (!changed) throw refusal(await store.refusal(tx, sandbox_id, team_id));
      return changed;
    });
  }
}

/** What a PUT changes in the record; a new duration counts from now. */
function changesOf(row: SandboxRow, request: ChangeRequest, now_ms: number, seal: Works['seal']): Changes {
  const { memory, memory_mib, env_vars, ttl, hard_ttl, auto_resume } = request;
  return {
    ...(memory === undefined || memory_mib === undefined
      ? {}
      : { memory_mib, resources: JSON.stringify({ ...JSON.parse(row.resources), memory }) }),
    ...(env_vars === undefined
      ? {}
      : { env_sealed: seal.seal(JSON.stringify(env_vars), sealContext.env(row.sandbox_id)) }),
    ...(ttl === undefined ? {} : { ttl_s: ttl, expires_at_ms: after(now_ms, ttl) }),
    ...(hard_ttl === undefined ? {} : { hard_ttl_s: hard_ttl, hard_expires_at_ms: after(now_ms, hard_ttl) }),
    ...(auto_resume === undefined ? {} : { auto_resume: auto_resume ? 1 : 0 }),
  };
}
