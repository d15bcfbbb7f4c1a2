import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { hasEnded, replicaName } from '../../src/manager/replica.ts';

it('a replica of this process has not ended, one of a process that is gone has', async () => {
  const own = replicaName();
  expect(hasEnded(own)).toBe(false);
  expect(replicaName()).not.toBe(own);
  const child = spawn('sleep', ['60']);
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  const [machine] = own.split('/');
  const its = [machine, child.pid, started, 'a'].join('/');
  expect(hasEnded(its)).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(hasEnded(its)).toBe(true);
});

it('a process that has the number of another is told from it', () => {
  const [machine, pid] = replicaName().split('/');
  expect(hasEnded([machine, pid, '1', 'a'].join('/'))).toBe(true);
});

it('nothing is said of replicas elsewhere', () => {
  expect(hasEnded('another-machine:1/1/1/a')).toBe(false);
  expect(hasEnded('')).toBe(false);
});
