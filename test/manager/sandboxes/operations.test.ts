import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { replicaName } from '../../../src/manager/database/replica.ts';
import type { OperationInProgress } from '../../../src/manager/sandboxes/housekeeping-store.ts';
import { Operations } from '../../../src/manager/sandboxes/operations.ts';
import type { ManagedSandboxRow } from '../../../src/manager/sandboxes/sandbox-store.ts';
import { eventually } from '../../support/eventually.ts';
import { operationsIn, rowOf } from '../../support/manager/sandbox-rows.ts';
import { scriptedParts } from '../../support/manager/scripted-parts.ts';

const ELSEWHERE = 'another-machine/1/1';
const LEASE_MS = 15_000;

describe('an operation', () => {
  it('of another replica is abandoned exactly when its lease has ended', async () => {
    const { operations } = await scriptedParts();
    fc.assert(
      fc.property(fc.integer({ min: -LEASE_MS, max: LEASE_MS }), (left_ms) => {
        const row = rowOf('a', { operation: 'pausing', operation_owner: ELSEWHERE });
        expect(operations.isAbandoned({ ...row, left_ms })).toBe(left_ms <= 0);
      }),
    );
  });

  it('of a replica on this machine that has ended is abandoned at once', async () => {
    const { operations } = await scriptedParts();
    const [machine, pid] = replicaName().split('/');
    const isAbandoned = (operation_owner: string) =>
      operations.isAbandoned({
        ...rowOf('a', { operation: 'pausing', operation_owner }),
        left_ms: LEASE_MS,
      });
    expect(isAbandoned(`${machine}/${pid}/1/a`)).toBe(true);
    expect(isAbandoned(replicaName())).toBe(false);
  });

  it('of this replica is abandoned if it is not being carried out, once its commit must have been answered', async () => {
    const { operations, services, housekeeping, clock } = await scriptedParts();
    const { store } = services;
    const row = rowOf('a', { operation: 'pausing' });
    await store.write((tx) => store.insert(tx, row, operations.lease()));
    const seen = async () => {
      const [found] = await operationsIn(housekeeping, services.clock.moment());
      return found as OperationInProgress;
    };
    expect(await seen()).toMatchObject({ operation_owner: services.replica, left_ms: LEASE_MS });
    expect(operations.isAbandoned(await seen())).toBe(false);
    await clock.advance(3_000);
    expect(operations.isAbandoned(await seen())).toBe(true);
    const { promise, resolve } = Promise.withResolvers<void>();
    const running = operations.run(row, operations.lease(), () => promise);
    expect([operations.isUnderWay('a'), operations.isAbandoned(await seen())]).toEqual([true, false]);
    resolve();
    await running;
    expect([operations.isUnderWay('a'), operations.isAbandoned(await seen())]).toEqual([false, true]);
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
    const at = services.clock.moment();
    const lost = { code: 'unavailable', details: { retry_after_s: 1 } };
    for (const row of [frozen, renewed, taken] as ManagedSandboxRow[]) {
      await store.write((tx) => store.insert(tx, row));
      await operations.run(row, operations.lease(), async (held) => {
        await held.check('a step');
        if (row === taken) await store.takeOver(row, { owner: ELSEWHERE, until: at.now }, at);
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

  it('is not held by a lease from before the clock of the database went back', async () => {
    const { services, housekeeping, recovery, clock } = await scriptedParts();
    const { store } = services;
    const claiming = { operation: 'claiming', status: 'starting', operation_owner: ELSEWHERE } as const;
    const operation_until_ms = clock.wallMs() + 3_600_000;
    await store.write((tx) => store.insert(tx, rowOf('a', { ...claiming, operation_until_ms })));
    await recovery.run();
    const [row] = await operationsIn(housekeeping, services.clock.moment());
    expect(row).toMatchObject({ operation_owner: ELSEWHERE, left_ms: LEASE_MS });
    await clock.advance(LEASE_MS);
    await recovery.run();
    await eventually(async () => expect(await store.findKept(store.db, 'a', null)).toBeNull());
  });

  it('cannot be ended by a replica that lost it', async () => {
    const { services } = await scriptedParts();
    const { store, replica } = services;
    const operations = new Operations(services);
    const row = rowOf('a', { operation: 'pausing', operation_owner: replica, operation_until_ms: 1 });
    await store.write((tx) => store.insert(tx, row));
    await operations.run(row, operations.lease(), async (held) => {
      const at = services.clock.moment();
      await store.takeOver(row, { owner: replica, until: at.now }, at);
      const ending = store.write((tx) => operations.endOperation(tx, held, { status: 'paused' }));
      await expect(ending).rejects.toMatchObject({ code: 'unavailable', details: { retry_after_s: 1 } });
      const confirming = store.write((tx) => operations.confirm(tx, held));
      await expect(confirming).rejects.toMatchObject({ code: 'unavailable' });
    });
    expect(await store.find(store.db, 'a', null)).toMatchObject({ status: 'running', operation: 'pausing' });
  });
});
