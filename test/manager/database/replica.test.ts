import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { hasReplicaEnded, replicaName } from '../../../src/manager/database/replica.ts';
import { IS_ROOT } from '../../support/rights.ts';

it('a replica of this process has not ended, one of a process that is gone has', async () => {
  const own = replicaName();
  expect(hasReplicaEnded(own)).toBe(false);
  expect(replicaName()).not.toBe(own);
  const child = spawn('sleep', ['60']);
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  const [machine] = own.split('/');
  const its = [machine, child.pid, started, 'a'].join('/');
  expect(hasReplicaEnded(its)).toBe(false);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(hasReplicaEnded(its)).toBe(true);
});

it('a process that has the number of another is told from it', () => {
  const [machine, pid] = replicaName().split('/');
  expect(hasReplicaEnded([machine, pid, '1', 'a'].join('/'))).toBe(true);
});

const HIDING =
  'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"';

it.skipIf(!IS_ROOT)('of another user, hidden by /proc, has not ended before it has', async () => {
  const child = spawn('sleep', ['60']);
  onTestFinished(() => void child.kill('SIGKILL'));
  const [machine] = replicaName().split('/');
  const told = () => {
    const program = `import { hasReplicaEnded } from ${JSON.stringify(resolve(import.meta.dirname, '../../../src/manager/database/replica.ts'))};
      process.stdout.write(String(hasReplicaEnded(${JSON.stringify([machine, child.pid, '1', 'a'].join('/'))})));`;
    const node = [process.execPath, '--input-type=module', '--eval', program];
    return execFileSync('unshare', ['--mount', 'sh', '-c', HIDING, 'sh', ...node], { encoding: 'utf8' });
  };
  expect(told()).toBe('false');
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(told()).toBe('true');
});

it('nothing is said of replicas elsewhere', () => {
  expect(hasReplicaEnded('another-machine:1/1/1/a')).toBe(false);
  expect(hasReplicaEnded('')).toBe(false);
});
