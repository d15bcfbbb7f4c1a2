import { expect, it } from 'vitest';
import { StartAppends } from '../../../src/outbox/sqlite/start-appends.ts';
import { draft } from '../../support/in-process-store.ts';

const append = (event_type: 'sandbox.ready' | 'process.started' | 'agent.event') => {
  return { drafts: [{ ...draft('{}'), event_type }] };
};

it('are a few events of processes, and the first sandbox.ready', () => {
  const start = new StartAppends();
  const told = ['process.started', 'sandbox.ready', 'process.started', 'sandbox.ready'] as const;
  expect(told.map((type) => start.includes(append(type)))).toEqual([true, true, false, false]);
});

it('are no publishes, no file events, and no flood of processes', () => {
  const start = new StartAppends();
  expect(start.includes(append('agent.event'))).toBe(false);
  expect(start.includes({ ...append('process.started'), tree: { put: [], drop: [] } })).toBe(false);
  const flood = Array.from({ length: 10 }, () => start.includes(append('process.started')));
  expect(flood).toEqual([...Array(7).fill(true), false, false, false]);
});
