import type { Updateable } from 'kysely';
import { newId } from '../base/ids.ts';
import type { RuntimeChange } from '../runtime/runtime.ts';
import type { ChangeRequest } from './change-request.ts';
import { after } from './claim-request.ts';
import type { Transaction } from './database.ts';
import {
  leaseOf,
  type Operations,
  refusal,
  runtimeLost,
  sealContext,
  specOf,
  type Works,
} from './operations.ts';
import type { SandboxRow } from './sandbox-store.ts';
import type { Settler } from './settler.ts';
import type { Operation, SandboxTable } from './tables.ts';
import type { Verb } from './transitions.ts';

/** The sandbox of a team; `team_id` null where the manager itself acts. */
export interface Named {
  sandbox_id: string;
  team_id: string | null;
}

type Changes = Updateable<SandboxTable>;

/** One transition: what its first commit checks and adds, what the runtime does, what its last commit changes. */
interface Steps {
  admit?: (tx: Transaction) => Promise<void>;
  onBegin?: (tx: Transaction, row: SandboxRow) => Promise<void>;
  carryOut: (row: SandboxRow) => Promise<RuntimeChange>;
  changes: (row: SandboxRow, now_ms: number) => Changes;
  onEnd: (tx: Transaction, row: SandboxRow, now_ms: number) => Promise<void>;
}

const UP = ['running', 'paused'] as const;

/** Transitions of sandboxes that are there. Errors: `not_found`, `conflict`. Source: contract section 7. */
export class Sandboxes {
  readonly #works: Works;
  readonly #operations: Operations;
  readonly #settler: Settler;

  constructor(works: Works, operations: Operations, settler: Settler) {
    this.#works = works;
    this.#operations = operations;
    this.#settler = settler;
  }

  async get({ sandbox_id, team_id }: Named): Promise<SandboxRow> {
    const { store } = this.#works;
    const row = await store.find(store.db, sandbox_id, team_id);
    if (!row) throw refusal({ refused: 'not_found', status: null });
    return row;
  }

  /** Freezes a sandbox; it leases nothing any more. */
  async pause(named: Named, reason: string | null): Promise<SandboxRow> {
    const { runtime, metering } = this.#works;
    return this.#transition(named, 'pause', {
      carryOut: (row) => runtime.pause(row.sandbox_id, reason),
      changes: () => ({ status: 'paused' }),
      onEnd: (tx, row, now_ms) => metering.ended(tx, row.sandbox_id, now_ms),
    });
  }

  /** Lets a sandbox go on where there is room for it; its ttl begins anew. */
  async resume(named: Named, reason: string | null): Promise<SandboxRow> {
    const { runtime, metering, store, admission } = this.#works;
    return this.#transition(named, 'resume', {
      admit: async (tx) => {
        const row = await store.find(tx, named.sandbox_id, named.team_id);
        if (row?.status !== 'paused' || row.operation !== null) return;
        await store.lockTeam(tx, row.team_id);
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
  async change(named: Named, request: ChangeRequest): Promise<SandboxRow> {
    const { memory_mib, env_vars } = request;
    const { runtime, store, admission, metering, seal } = this.#works;
    const changes = (row: SandboxRow, now_ms: number) => changesOf(row, request, now_ms, seal);
    if (memory_mib === undefined && env_vars === undefined) return this.#changeIdle(named, changes);
    const change = {
      ...(env_vars === undefined ? {} : { env: env_vars }),
      ...(memory_mib === undefined ? {} : { memory_mib }),
    };
    return this.#transition(named, 'change', {
      admit: async (tx) => {
        const row = await store.find(tx, named.sandbox_id, named.team_id);
        if (memory_mib === undefined || row?.status !== 'running') return;
        await store.lockTeam(tx, row.team_id);
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
  async refresh(named: Named, duration_s: number | undefined): Promise<SandboxRow> {
    return this.#changeIdle(named, (row, now_ms) =>
      row.ttl_s === 0 ? {} : { expires_at_ms: after(now_ms, duration_s ?? row.ttl_s) },
    );
  }

  /** Copies a sandbox; the child is paused. Its durations are the source's unless others are given. */
  async fork(
    named: Named,
    given: { ttl?: number | undefined; hard_ttl?: number | undefined },
  ): Promise<SandboxRow> {
    const { store, clock, runtime, seal, admission } = this.#works;
    const child_id = newId('sbx_', clock.wallMs());
    let child: SandboxRow | null = null;
    const copy = async (source: SandboxRow): Promise<RuntimeChange> => {
      const made = child as SandboxRow;
      const copied = await runtime.fork(source.sandbox_id, specOf(made, seal));
      if (copied.outcome === 'lost') return 'lost';
      child = { ...made, pod_name: copied.pod_name };
      return 'done';
    };
    try {
      await this.#operations.run(child_id, () =>
        this.#transition(named, 'fork', {
          onBegin: async (tx, source) => {
            child = this.#childOf(source, child_id, given);
            await admission.admitCopy(tx, leaseOf(child));
            await store.insert(tx, child);
          },
          carryOut: copy,
          changes: () => ({}),
          onEnd: async (tx, _source, now_ms) => {
            child = await this.#operations.end(tx, child_id, 'copying', changesOfCopy(child, now_ms));
          },
        }),
      );
      return child as unknown as SandboxRow;
    } catch (error) {
      if (child) await this.#settler.settle(child);
      throw error;
    }
  }

  async #transition(named: Named, verb: Exclude<Verb, 'delete'>, steps: Steps): Promise<SandboxRow> {
    const { store, clock, metrics } = this.#works;
    const begun = await store.write(async (tx) => {
      await steps.admit?.(tx);
      const where = { ...named, now_ms: clock.wallMs() };
      const row = await store.begin(tx, verb, where, this.#operations.lease());
      if ('refused' in row) throw refusal(row);
      await steps.onBegin?.(tx, row);
      return row;
    });
    return this.#operations.run(named.sandbox_id, async () => {
      try {
        const ended = await this.#carryOut(begun, steps);
        metrics.transitions.add([verb, 'done']);
        return ended;
      } catch (error) {
        metrics.transitions.add([verb, 'failed']);
        throw error;
      }
    });
  }

  async #carryOut(row: SandboxRow, steps: Steps): Promise<SandboxRow> {
    const { store, clock } = this.#works;
    const operation = row.operation as Operation;
    try {
      if ((await steps.carryOut(row)) === 'lost') throw runtimeLost();
      const now_ms = clock.wallMs();
      return await store.write(async (tx) => {
        const changes = { ...steps.changes(row, now_ms), updated_at_ms: now_ms };
        const ended = await this.#operations.end(tx, row.sandbox_id, operation, changes);
        await steps.onEnd(tx, ended, now_ms);
        return ended;
      });
    } catch (error) {
      await this.#settler.settle(row);
      throw error;
    }
  }

  /** A change that the runtime has no part in. */
  async #changeIdle(
    { sandbox_id, team_id }: Named,
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

  /** A child's record: the source's webhook, environment and resources under an identity of its own. */
  #childOf(
    source: SandboxRow,
    sandbox_id: string,
    { ttl, hard_ttl }: { ttl?: number | undefined; hard_ttl?: number | undefined },
  ): SandboxRow {
    const { clock, seal } = this.#works;
    const now_ms = clock.wallMs();
    const moved = (sealed: string | null, context: (id: string) => string) =>
      sealed && seal.seal(seal.open(sealed, context(source.sandbox_id)), context(sandbox_id));
    return {
      ...source,
      sandbox_id,
      status: 'paused',
      operation: 'copying',
      pod_name: null,
      runtime_generation: 1,
      webhook_secret_sealed: moved(source.webhook_secret_sealed, sealContext.secret),
      env_sealed: moved(source.env_sealed, sealContext.env),
      ttl_s: ttl ?? source.ttl_s,
      hard_ttl_s: hard_ttl ?? source.hard_ttl_s,
      expires_at_ms: null,
      hard_expires_at_ms: null,
      claimed_at_ms: null,
      created_at_ms: now_ms,
      updated_at_ms: now_ms,
    };
  }
}

function changesOfCopy(child: SandboxRow | null, now_ms: number): Changes {
  return {
    pod_name: child?.pod_name ?? null,
    claimed_at_ms: now_ms,
    updated_at_ms: now_ms,
    expires_at_ms: after(now_ms, child?.ttl_s ?? 0),
    hard_expires_at_ms: after(now_ms, child?.hard_ttl_s ?? 0),
  };
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
