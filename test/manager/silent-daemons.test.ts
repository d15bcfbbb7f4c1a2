import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '../../src/manager/database/database.ts';
import { Limiter } from '../../src/manager/sandboxes/limiter.ts';
import type { RuntimeChange, RuntimeState } from '../../src/runtime/runtime.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { ScriptedRuntime } from '../support/manager/scripted-runtime.ts';
import { scratchFolder } from '../support/scratch.ts';

/** Sandboxes of one team answer nothing: every question waits for as long as the test runs. */
class SilentRuntime extends ScriptedRuntime {
  readonly silent = new Set<string>();
  readonly #end = Promise.withResolvers<void>();

  /** Those that wait fail at last. */
  giveUp(): void {
    this.#end.promise.catch(() => {});
    this.#end.reject(new Error('nobody answered'));
  }

  override async inspect(sandbox_id = ''): Promise<RuntimeState> {
    return this.silent.has(sandbox_id) ? (this.#end.promise as never) : super.inspect(sandbox_id);
  }

  override async pause(sandbox_id = ''): Promise<RuntimeChange> {
    return this.silent.has(sandbox_id) ? (this.#end.promise as never) : super.pause(sandbox_id);
  }
}

async function scene() {
  const runtime = new SilentRuntime();
  const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
  const running = await startManager(database, { runtime });
  onTestFinished(() => runtime.giveUp());
  const hostile = await running.client('team_hostile', 'sandboxes:write');
  const other = await running.client('team_other', 'sandboxes:write');
  const claimSilent = async (config: object = {}) => {
    const id = await hostile.claim(config);
    runtime.silent.add(id);
    return id;
  };
  const heartbeat = async (sandbox_id: string) => {
    const { db, close } = await openDatabase(database);
    const { heartbeat_ms } = await db
      .selectFrom('leases')
      .select('heartbeat_ms')
      .where('sandbox_id', '=', sandbox_id)
      .executeTakeFirstOrThrow();
    await close();
    return heartbeat_ms;
  };
  return { ...running, runtime, hostile, other, claimSilent, heartbeat };
}

describe('sandboxes whose daemons do not answer', () => {
  it('hold up neither metering, nor death detection, nor deletions of others', async () => {
    const { runtime, hostile, other, claimSilent, heartbeat } = await scene();
    const silent = await Promise.all(Array.from({ length: 40 }, () => claimSilent()));
    const id = await other.claim();
    const dead = await other.claim();
    const began_ms = await heartbeat(id);
    await vi.waitFor(async () => expect(await heartbeat(id)).toBeGreaterThan(began_ms), { timeout: 30_000 });
    expect(await heartbeat(silent[0] as string)).toBeGreaterThan(0);
    runtime.states.set(dead, 'lost');
    await vi.waitFor(
      async () => expect((await other.get(`/api/v1/sandboxes/${dead}`)).data.status).toBe('failed'),
      { timeout: 30_000 },
    );
    expect((await hostile.call('DELETE', `/api/v1/sandboxes/${silent[0]}`)).status).toBe(200);
  });

  it('hold up no end of a ttl but their own', async () => {
    const { other, claimSilent } = await scene();
    await claimSilent({ ttl: 1 });
    const id = await other.claim({ ttl: 2 });
    await vi.waitFor(
      async () => expect((await other.get(`/api/v1/sandboxes/${id}`)).data.status).toBe('paused'),
      { timeout: 20_000 },
    );
  });
});

describe('cleanups', () => {
  it('of one team leave places for those of others', async () => {
    const limiter = new Limiter(4, 2);
    const ran: string[] = [];
    const never = () => new Promise<void>(() => {});
    for (let n = 0; n < 10; n++) void limiter.run('hostile', never);
    for (let n = 0; n < 3; n++) {
      await limiter.run('other', async () => {
        ran.push(`other ${n}`);
      });
    }
    expect(ran).toEqual(['other 0', 'other 1', 'other 2']);
  });

  it('run in the order in which they came, as many as there are places', async () => {
    const limiter = new Limiter(2, 2);
    const ends: (() => void)[] = [];
    const begun: number[] = [];
    const works = Array.from({ length: 5 }, (_, n) =>
      limiter.run('team', () => {
        begun.push(n);
        return new Promise<void>((resolve) => ends.push(resolve));
      }),
    );
    for (let n = 0; n < 5; n++) {
      await vi.waitFor(() => expect(ends.length).toBeGreaterThan(n));
      expect(begun.length - n).toBeLessThanOrEqual(2);
      ends[n]?.();
    }
    await Promise.all(works);
    expect(begun).toEqual([0, 1, 2, 3, 4]);
  });
});
