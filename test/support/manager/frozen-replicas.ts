import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import type { Given } from '../../../src/base/options.ts';
import { managerConfig } from '../../../src/manager/config/config.ts';
import type { Database } from '../../../src/manager/database/database.ts';
import { makeParts, type Parts } from '../../../src/manager/parts.ts';
import { claimRequest } from '../../../src/manager/sandboxes/requests.ts';
import type { SandboxRef } from '../../../src/manager/sandboxes/transition-runner.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import { eventually } from '../eventually.ts';
import { scratchFolder } from '../scratch.ts';
import { type AtStep, freezingRuntime, type Moment } from './freezing-runtime.ts';
import { opened, SEAL, SECRET, SILENT } from './outbox.ts';

/** Longer than a lease. */
const FROZEN_MS = 20_000;
const CALLER = { team_id: 'team_1', actor: 'tok_1', scopes: [], is_internal: false };
/** Nobody answers there: what is not delivered is handed over. */
const WEBHOOK = { url: 'http://127.0.0.1:9/', secret: SECRET };

/** Sandboxes as the replicas of a test drive them. */
export interface FrozenWorld {
  /** The runtime of one more replica, of the same sandboxes. */
  open(): Promise<Runtime>;
  /** More of the claims' configuration. */
  config?: object;
  options?: Given;
  /** A sandbox acknowledges events, whose ids are returned. */
  publish?(sandbox_id: string): Promise<string[]>;
  /** What else of a sandbox differs from its status. */
  differences?(sandbox_id: string, status: string): Promise<string[]>;
}

/** What one replica is asked for. */
interface Verb {
  /** Makes the sandbox that it is asked for of, by a replica that nobody stops. */
  prepare: (replica: Replica) => Promise<SandboxRef>;
  act: (replica: Replica, named: SandboxRef) => Promise<unknown>;
}

const running = (replica: Replica) => replica.claim();
const paused = async (replica: Replica) => {
  const named = await replica.claim();
  await replica.parts.sandboxes.pause(named, null);
  return named;
};

/** Every verb that changes sandboxes. */
export const VERBS: Record<string, Verb> = {
  claim: {
    prepare: async () => ({ sandbox_id: 'none', team_id: 'team_1' }),
    act: (replica) => replica.claim(),
  },
  fork: { prepare: running, act: ({ parts }, named) => parts.forks.fork(named, {}) },
  'fork of a paused one': { prepare: paused, act: ({ parts }, named) => parts.forks.fork(named, {}) },
  pause: { prepare: running, act: ({ parts }, named) => parts.sandboxes.pause(named, null) },
  resume: { prepare: paused, act: ({ parts }, named) => parts.sandboxes.resume(named, null) },
  change: {
    prepare: running,
    act: ({ parts }, named) =>
      parts.sandboxes.change(named, { memory: '192Mi', memory_mib: 192, env_vars: { NEW: '1' } }),
  },
  delete: {
    prepare: running,
    async act({ parts, world }, named) {
      const published = (await world.publish?.(named.sandbox_id)) ?? [];
      await parts.deletions.delete(named.sandbox_id, 'team_1', { reason: 'api', actor: null });
      await parts.operations.drained();
      return published;
    },
  },
};

/** A replica of a manager without API and jobs: a test lets it look for abandoned operations. */
class Replica {
  readonly parts: Parts;
  readonly world: FrozenWorld;

  constructor(parts: Parts, world: FrozenWorld) {
    this.parts = parts;
    this.world = world;
  }

  async claim(): Promise<SandboxRef> {
    const body = { config: { webhook: WEBHOOK, resources: { memory: '128Mi' }, ...this.world.config } };
    const request = claimRequest(body as Parameters<typeof claimRequest>[0], this.parts.claim_rules);
    const { sandbox_id } = await this.parts.claims.claim(CALLER, request, null);
    return { sandbox_id, team_id: 'team_1' };
  }

  recover(): Promise<number> {
    return this.parts.recovery.run();
  }
}

/** Stops who comes to a moment of a step, until it is opened. */
class Gate {
  readonly #reached = Promise.withResolvers<void>();
  readonly #opened = Promise.withResolvers<void>();
  /** Every step that was come to, in order. */
  readonly steps: string[] = [];
  #is_passed = false;

  readonly atStep: AtStep;

  constructor(name: string | null, at: Moment) {
    this.atStep = async (step, moment) => {
      if (moment === 'before') this.steps.push(step);
      if (step !== name || moment !== at || this.#is_passed) return;
      this.#is_passed = true;
      this.#reached.resolve();
      await this.#opened.promise;
    };
  }

  /** Resolves when somebody stands here; rejects if `work` ends before. */
  async reached(work: Promise<unknown>): Promise<void> {
    const ended = work.then((error) => {
      throw new Error(`it was not reached: ${error}`);
    });
    await Promise.race([this.#reached.promise, ended]);
  }

  open(): void {
    this.#opened.resolve();
  }
}

/** What a frozen replica's clock has done meanwhile: gone on, or stood still as that of a machine that is suspended. */
export type FrozenClock = 'goes on' | 'stands still';

/** Replicas on one database that are stopped at steps of what they do, and judged by what is left. */
export class FrozenReplicas {
  readonly #world: FrozenWorld;
  readonly #database: Database;
  readonly #runtimes: Runtime[];
  #late_ms = 0;

  private constructor(world: FrozenWorld, database: Database, runtimes: Runtime[]) {
    this.#world = world;
    this.#database = database;
    this.#runtimes = runtimes;
  }

  static async open(world: FrozenWorld): Promise<FrozenReplicas> {
    const database = await opened(`sqlite:${join(scratchFolder(), 'manager.db')}`);
    return new FrozenReplicas(world, database, [await world.open(), await world.open(), await world.open()]);
  }

  /** The steps of a verb, or of its recovery, as the runtime takes them now. */
  async steps(verb: Verb, of: 'verb' | 'recovery'): Promise<string[]> {
    const seen = new Gate(null, 'after');
    if (of === 'verb') {
      const replica = await this.#replica(0, seen.atStep);
      await verb.act(replica, await verb.prepare(replica));
      // What it was prepared by is not its own.
      const prepared = new Gate(null, 'after');
      await verb.prepare(await this.#replica(0, prepared.atStep));
      seen.steps.splice(0, prepared.steps.length);
    } else {
      const stopped = await this.#stop(verb, await this.#middle(verb), 'after');
      await this.#expire('stands still');
      await (await this.#replica(1, seen.atStep)).recover();
      await this.#untilIdle();
      stopped.gate.open();
      await stopped.acting;
      await this.#settled(stopped.replica);
    }
    await this.#clear();
    return [...new Set(seen.steps)];
  }

  /** Freezes a replica at a step of a verb, lets another take over, and thaws it: what is left must be what is recorded. */
  async freezeVerb(verb: Verb, step: string, moment: Moment, clock: FrozenClock): Promise<void> {
    const { gate, replica, acting } = await this.#stop(verb, step, moment);
    await this.#expire(clock);
    const well = await this.#replica(1);
    await well.recover();
    await this.#untilIdle();
    gate.open();
    const outcome = await acting;
    if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'unavailable' });
    await this.#settled(replica, well);
    await this.#clear(outcome);
  }

  /** The same at a step of the recovery, by a replica that has taken over from one that is frozen as well. */
  async freezeRecovery(verb: Verb, step: string, moment: Moment, clock: FrozenClock): Promise<void> {
    const first = await this.#stop(verb, await this.#middle(verb), 'after');
    await this.#expire('stands still');
    const gate = new Gate(step, moment);
    const second = await this.#replica(1, gate.atStep);
    const recovering = second.recover().then(() => second.parts.operations.drained());
    await gate.reached(recovering);
    await this.#expire(clock);
    const well = await this.#replica(2);
    await well.recover();
    await this.#untilIdle();
    gate.open();
    await recovering;
    first.gate.open();
    await first.acting;
    await this.#settled(first.replica, second, well);
    await this.#clear(await first.acting);
  }

  async #middle(verb: Verb): Promise<string> {
    const known = this.#middles.get(verb) ?? (await this.steps(verb, 'verb'));
    this.#middles.set(verb, known);
    return known[Math.floor(known.length / 2)] as string;
  }

  readonly #middles = new Map<Verb, string[]>();

  async #stop(verb: Verb, step: string, moment: Moment) {
    const named = await verb.prepare(await this.#replica(1));
    const gate = new Gate(step, moment);
    const replica = await this.#replica(0, gate.atStep);
    const acting = verb.act(replica, named).catch((error: Error) => error);
    await gate.reached(acting);
    return { gate, replica, acting };
  }

  /** Time passes, or the frozen replica's time stands still and everybody else's has passed. */
  async #expire(clock: FrozenClock): Promise<void> {
    if (clock === 'goes on') {
      this.#late_ms += FROZEN_MS;
      return;
    }
    const { db } = this.#database;
    const left = db
      .updateTable('sandboxes')
      .set({ operation_until_ms: 0 })
      .where('operation', 'is not', null);
    await left.execute();
  }

  async #replica(index: number, atStep: AtStep = async () => {}): Promise<Replica> {
    const clock: Clock = {
      ...systemClock,
      wallMs: () => systemClock.wallMs() + this.#late_ms,
      boot: () => ({ ...systemClock.boot(), ms: systemClock.boot().ms + this.#late_ms }),
    };
    const given = { runtime: 'none', allow_webhook_cidr: ['127.0.0.0/8'], ...this.#world.options };
    const config = managerConfig({ database: 'sqlite:none', ...given }, {}, {});
    const runtime = freezingRuntime(this.#runtimes[index] as Runtime, atStep);
    const parts = await makeParts({ config, log: SILENT, clock, runtime }, this.#database, SEAL);
    onTestFinished(() => parts.quotas.close());
    return new Replica(parts, this.#world);
  }

  /** Waits until nobody is at work. */
  async #untilIdle(): Promise<void> {
    await eventually(async () => {
      const { db } = this.#database;
      const busy = db.selectFrom('sandboxes').select(['sandbox_id', 'operation']);
      expect(await busy.where('operation', 'is not', null).execute()).toEqual([]);
    });
  }

  /** Lets replicas look for what is left to do, until what runs is what is recorded. */
  async #settled(...replicas: Replica[]): Promise<void> {
    await eventually(async () => {
      for (const replica of replicas) await replica.recover();
      expect(await this.#differences()).toEqual([]);
    });
    expect(replicas.flatMap(({ parts }) => [...parts.operations.lost.keys()])).toEqual([]);
  }

  async #differences(): Promise<string[]> {
    const { db } = this.#database;
    const [runtime] = this.#runtimes as [Runtime];
    const rows = await db.selectFrom('sandboxes').selectAll().where('deleted_at_ms', 'is', null).execute();
    const leased = await db.selectFrom('leases').select('sandbox_id').execute();
    const found: string[] = [];
    for (const sandbox_id of await runtime.list()) {
      if (!rows.some((row) => row.sandbox_id === sandbox_id)) found.push(`${sandbox_id} is in no record`);
    }
    for (const { sandbox_id, status, operation } of rows) {
      const state = await runtime.inspect(sandbox_id);
      if (operation !== null || state !== status)
        found.push(`${sandbox_id}: ${status} ${operation} is ${state}`);
      const is_leased = leased.some((lease) => lease.sandbox_id === sandbox_id);
      if (is_leased !== (status === 'running'))
        found.push(`${sandbox_id}: ${status} has a lease: ${is_leased}`);
      found.push(...((await this.#world.differences?.(sandbox_id, status)) ?? []));
    }
    if (leased.length > rows.length) found.push('a lease is of no sandbox');
    return found;
  }

  /** Deletes everything; what was published must be in the outbox, and one deletion of each sandbox. */
  async #clear(published: unknown = []): Promise<void> {
    const { db } = this.#database;
    const well = await this.#replica(1);
    const rows = await db.selectFrom('sandboxes').selectAll().where('deleted_at_ms', 'is', null).execute();
    for (const { sandbox_id } of rows) {
      await well.parts.deletions.delete(sandbox_id, 'team_1', { reason: 'api', actor: null });
    }
    await this.#untilIdle();
    const records = await db.selectFrom('outbox').select(['event_id', 'sandbox_id', 'event_type']).execute();
    const deleted = records.filter(({ event_type }) => event_type === 'sandbox.deleted');
    const gone = await db.selectFrom('sandboxes').select('sandbox_id').execute();
    const byId = (found: { sandbox_id: string }[]) => found.map(({ sandbox_id }) => sandbox_id).sort();
    expect(byId(deleted)).toEqual(byId(gone));
    const ids = new Set(records.map(({ event_id }) => event_id));
    expect((Array.isArray(published) ? published : []).filter((id) => !ids.has(id))).toEqual([]);
    expect(await Promise.all(this.#runtimes.map((runtime) => runtime.list()))).toEqual(
      this.#runtimes.map(() => []),
    );
  }
}
