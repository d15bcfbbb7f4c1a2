import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ProcessView } from '../../src/contract/processes.ts';
import type { SupervisedProcess } from '../../src/process/process.ts';
import { newRecord, requestFingerprint } from '../../src/process/record.ts';
import { type ListPlace, ProcessRegistry } from '../../src/process/registry.ts';
import { TreeFinder } from '../../src/process/tree/tree.ts';
import { eventually } from '../support/eventually.ts';
import { start } from '../support/process/harness.ts';

test('the same id with the same request is one process, and with another request a conflict', async () => {
  const { supervisor, events } = await start();
  const request = { command: ['sleep', '100'], env: { A: '1', B: '2' } };
  const [first, second] = await Promise.all([
    supervisor.spawn({ ...request, process_id: 'p' }),
    supervisor.spawn({ process_id: 'p', env: { B: '2', A: '1' }, command: ['sleep', '100'] }),
  ]);
  expect([first.created, second.created]).toEqual([true, false]);
  expect(second.process.pid).toBe(first.process.pid);
  await expect(supervisor.spawn({ command: ['true'], process_id: 'p' })).rejects.toMatchObject({
    code: 'conflict',
  });
  await eventually(() => expect(events).toHaveLength(1));
});

test('two requests are the same whatever the order of their keys and whatever their id', () => {
  const request = { shell: 'a', env: { A: '1', B: '2' }, cwd: '/' };
  expect(requestFingerprint({ ...request, process_id: 'x' })).toBe(
    requestFingerprint({ cwd: '/', env: { B: '2', A: '1' }, shell: 'a' }),
  );
  expect(requestFingerprint(request)).not.toBe(requestFingerprint({ ...request, env: { A: '2', B: '1' } }));
});

test('any two different commands have different fingerprints', () => {
  const argv = fc.array(fc.string({ minLength: 1 }), { minLength: 1 });
  fc.assert(
    fc.property(argv, argv, (a, b) => {
      const is_same = JSON.stringify(a) === JSON.stringify(b);
      expect(requestFingerprint({ command: a }) === requestFingerprint({ command: b })).toBe(is_same);
    }),
  );
});

/** An ended process that was created then. */
function ended(process_id: string, created_at_ms: number, cwd = '/'): SupervisedProcess {
  const record = newRecord(process_id, { command: ['true'], cwd }, created_at_ms, false);
  const view = async () => ({ process_id }) as ProcessView;
  return { record, is_idle: true, view } as unknown as SupervisedProcess;
}

test('what is kept throughout the paging is on exactly one page, whatever comes and goes meanwhile', async () => {
  const made = fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.nat(400)), {
    minLength: 1,
    maxLength: 40,
    selector: ([, id]) => id,
  });
  const run = async (
    kept: [number, number][],
    limit: number,
    removed: number[],
    added: [number, number][],
  ) => {
    const registry = new ProcessRegistry(new TreeFinder());
    for (const [at_ms, id] of kept) registry.addRecovered(ended(`p${id}`, at_ms));
    const seen: string[] = [];
    const goes = new Set(removed.map((index) => `p${kept[index % kept.length]?.[1]}`));
    for (let place: ListPlace | null = null, pages = 0; ; pages++) {
      const { processes, next }: Awaited<ReturnType<ProcessRegistry['page']>> = await registry.page(
        limit,
        place,
      );
      expect(processes.length).toBeLessThanOrEqual(limit);
      seen.push(...processes.map(({ process_id }) => process_id));
      if (next === null) break;
      place = next && { ...next };
      for (const id of goes) registry.unlist(id);
      const [at_ms, id] = added[pages] ?? [];
      if (at_ms !== undefined) registry.addRecovered(ended(`later${id}.${pages}`, at_ms));
    }
    const stayed = kept.map(([, id]) => `p${id}`).filter((id) => !goes.has(id));
    expect(seen.filter((id) => stayed.includes(id)).sort()).toEqual(stayed.sort());
    expect(new Set(seen).size).toBe(seen.length);
  };
  const limits = fc.integer({ min: 1, max: 10 });
  await fc.assert(fc.asyncProperty(made, limits, fc.array(fc.nat(100), { maxLength: 5 }), made, run));
});

test('a page ends before its texts take too much, and the next goes on there', async () => {
  const registry = new ProcessRegistry(new TreeFinder());
  for (let index = 0; index < 600; index++)
    registry.addRecovered(ended(`p${index}`, index, `/${'d'.repeat(4_000)}`));
  const first = await registry.page(1_000, null);
  expect(first.processes.length).toBeGreaterThan(200);
  expect(first.processes.length).toBeLessThan(300);
  const second = await registry.page(1_000, first.next);
  expect(second.processes[0]?.process_id).toBe(`p${599 - first.processes.length}`);
});
