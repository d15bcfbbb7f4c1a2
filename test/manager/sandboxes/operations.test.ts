import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replicaName } from '../../../src/manager/database/replica.ts';
import { Operations } from '../../../src/manager/sandboxes/operations.ts';
import type { ManagedSandboxRow } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { rowOf } from '../../support/manager/sandbox-rows.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';

const ELSEWHERE = 'another-machine/1/1';
const LEASE_MS = 15_000;

describe('an operation', () => {
  it('of another replica is abandoned exactly when its lease has ended', async () => {
    const { operations, clock } = await scriptedParts();
    fc.assert(
      fc.property(fc.integer({ min: -LEASE_MS, max: LEASE_MS }), (left_ms) => {
        const operation_until_ms = clock.wallMs() + left_ms;
        const row = rowOf('a', { operation: 'pausing', operation_owner: ELSEWHERE, operation_until_ms });
        expect(operations.isAbandoned(row)).toBe(left_ms <= 0);
      }),
    );
  });

  it('of a replica on this machine that has ended is abandoned at once', async () => {
    const { operations, clock } = await scriptedParts();
    const [machine, pid] = replicaName().split('/');
    const operation_until_ms = clock.wallMs() + LEASE_MS;
    const lease = { operation: 'pausing', operation_until_ms } as const;
    expect(operations.isAbandoned(rowOf('a', { ...lease, operation_owner: `${machine}/${pid}/1/a` }))).toBe(
      true,
    );
    expect(operations.isAbandoned(rowOf('a', { ...lease, operation_owner: replicaName() }))).toBe(false);
  });

  it('of this replica is abandoned if it is not being carried out, once its commit must have been answered', async () => {
    const { operations, services, clock } = await scriptedParts();
    const lease = operations.lease();
    const { owner, until_ms } = lease;
    expect([owner, until_ms - clock.wallMs()]).toEqual([services.replica, LEASE_MS]);
    const row = rowOf('a', { operation: 'pausing', operation_owner: owner, operation_until_ms: until_ms });
    expect(operations.isAbandoned(row)).toBe(false);
    await clock.advance(3_000);
    expect(operations.isAbandoned(row)).toBe(true);
    const { promise, resolve } = Promise.withResolvers<void>();
    const running = operations.run(row, operations.lease(), () => promise);
    expect([operations.isUnderWay('a'), operations.isAbandoned(row)]).toEqual([true, false]);
    resolve();
    await running;
    expect([operations.isUnderWay('a'), operations.isAbandoned(row)]).toEqual([false, true]);
  });

  it('keeps its lease while it is being carried out', async () => {
    const { operations, services, clock, claim, runtime, sandboxes } = await scriptedParts();
    const named = await claim();
    const release = runtime.hold('pause');
    const pausing = sandboxes.pause(named, null);
    const rowNow = async () =>
      (await services.store.find(services.store.db, named.sandbox_id, null)) as ManagedSandboxRow;
    await clock.advance(0);
    const first_ms = (await rowNow()).operation_until_ms as number;
    await clock.advance(4_000);
    await operations.renew();
    expect((await rowNow()).operation_until_ms).toBe(first_ms + 4_000);
    release();
    await pausing;
    expect(await rowNow()).toMatchObject({ status: 'paused', operation: null, operation_until_ms: null });
  });

  it('lets no step begin once its lease has ended, or another replica has it', async () => {
    const { operations, services, clock } = await scriptedParts();
    const { store } = services;
    const left = { operation: 'pausing', operation_owner: services.replica, operation_until_ms: 1 } as const;
    const [frozen, renewed, taken] = ['frozen', 'renewed', 'taken'].map((id) => rowOf(id, left));
    const lost = { code: 'unavailable', details: { retry_after_s: 1 } };
    for (const row of [frozen, renewed, taken] as ManagedSandboxRow[]) {
      await store.write((tx) => store.insert(tx, row));
      await operations.run(row, operations.lease(), async (held) => {
        await held.check('a step');
        if (row === taken) await store.takeOver(row, { owner: ELSEWHERE, until_ms: 9 }, clock.wallMs());
        clock.freeze(LEASE_MS - 1);
        await held.check('a step');
        if (row === renewed) await operations.renew();
        clock.freeze(1);
        if (row === renewed) return held.check('a step');
        await expect(held.check('a step')).rejects.toMatchObject(lost);
        expect(operations.isUnderWay(row.sandbox_id)).toBe(false);
      });
    }
    expect([...operations.lost.keys()]).toEqual(['frozen', 'taken']);
  });

  it('cannot be ended by a replica that lost it', async () => {
    const { services } = await scriptedParts();
    const { store, replica } = services;
    const operations = new Operations(services);
    const row = rowOf('a', { operation: 'pausing', operation_owner: replica, operation_until_ms: 1 });
    await store.write((tx) => store.insert(tx, row));
    await operations.run(row, operations.lease(), async (held) => {
      await store.takeOver(row, { owner: replica, until_ms: 9 }, 0);
      const ending = store.write((tx) => operations.endOperation(tx, held, { status: 'paused' }));
      await expect(ending).rejects.toMatchObject({ code: 'unavailable', details: { retry_after_s: 1 } });
      const confirming = store.write((tx) => operations.confirm(tx, held));
      await expect(confirming).rejects.toMatchObject({ code: 'unavailable' });
    });
    expect(await store.find(store.db, 'a', null)).toMatchObject({ status: 'running', operation: 'pausing' });
  });
});
