import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { terminateTree } from '../../../src/process/tree/terminate-tree.ts';
import { TreeFinder } from '../../../src/process/tree/tree.ts';
import { eventually } from '../../support/eventually.ts';
import { isAlive, program, runningRoot } from '../../support/process/harness.ts';

test('a tree is killed also where looking for its members takes longer than a kill may', async () => {
  const child = spawn(program('ignore-term.mjs')[0] as string, program('ignore-term.mjs').slice(1), {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  // An hour passes between any two looks at this clock.
  let now_ms = 0;
  const clock: Clock = {
    boot: () => ({ id: '', ms: 0 }),
    wallMs: () => 0,
    monotonicMs: () => {
      now_ms += 3_600_000;
      return now_ms;
    },
    after: (_, run) => systemClock.after(1, run),
  };
  const root = runningRoot(child.pid, 'none');
  const trees = new TreeFinder();
  const asked: string[] = [];
  const target = {
    members: async () => (await trees.find([root]))[0] ?? [],
    stillThere: trees.stillThere,
    group: () => root.pid,
    onSignal: (signal: string) => asked.push(signal),
    leader_ended: ended,
    after: clock.after,
    isPaused: () => false,
  };
  await terminateTree(clock, target, 1);
  await ended;
  expect(asked).toEqual(['SIGTERM', 'SIGKILL']);
  await eventually(async () => expect(await isAlive(root.pid)).toBe(false));
});
