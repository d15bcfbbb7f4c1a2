import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { readStatNow } from '../../../src/base/linux/procfs.ts';
import { Freezer } from '../../../src/process/tree/freezer.ts';
import { rootByTag, TAG_VARIABLE, TreeFinder, type TreeRoot } from '../../../src/process/tree/tree.ts';
import { eventually } from '../../support/eventually.ts';
import { runningRoot } from '../../support/process/harness.ts';

const roots: TreeRoot[] = [];
let trees_made = 0;

afterEach(async () => {
  for (const members of await new TreeFinder().find(roots.splice(0))) {
    for (const { pid } of members) process.kill(pid, 'SIGKILL');
  }
});

/** A tree of three: a shell, a member of its group, and one in a session of its own whose parent has ended. */
async function startTree() {
  const tag = `test-${process.pid}-${trees_made++}`;
  const child = spawn('sh', ['-c', 'sleep 1000 & (setsid sleep 1000 &); wait'], {
    detached: true,
    stdio: 'ignore',
    env: { PATH: process.env.PATH, [TAG_VARIABLE]: tag },
  });
  const root = runningRoot(child.pid, tag);
  roots.push(root);
  const trees = new TreeFinder();
  const members = await eventually(async () => {
    const [found = []] = await trees.find([root]);
    const sleeping = found.filter(({ session }) => session !== root.pid);
    expect([found.length, sleeping.length]).toEqual([3, 1]);
    return found;
  });
  return { root, trees, members };
}

test('without a cgroup every member is stopped by signal, and goes on', async () => {
  const { root, trees, members } = await startTree();
  const freezer = new Freezer(systemClock, pino({ level: 'silent' }), trees, 'unused');
  await freezer.freeze([root]);
  for (const { pid } of members) expect(readStatNow(pid)?.state).toBe('T');
  await freezer.thaw();
  for (const { pid } of members) await eventually(() => expect(readStatNow(pid)?.state).toBe('S'));
});

test('who was stopped before stays stopped', async () => {
  const { root, trees, members } = await startTree();
  const [stopped] = members;
  process.kill(stopped?.pid ?? 0, 'SIGSTOP');
  await eventually(() => expect(readStatNow(stopped?.pid ?? 0)?.state).toBe('T'));
  const freezer = new Freezer(systemClock, pino({ level: 'silent' }), trees, 'unused');
  await freezer.freeze([root]);
  await freezer.thaw();
  for (const { pid } of members.slice(1)) await eventually(() => expect(readStatNow(pid)?.state).toBe('S'));
  expect(readStatNow(stopped?.pid ?? 0)?.state).toBe('T');
});

const groups = '/sys/fs/cgroup/unified';
const can_freeze = await access(`${groups}/cgroup.procs`, constants.W_OK).then(
  () => true,
  () => false,
);

test.runIf(can_freeze)(
  'where a cgroup can be made, the kernel freezes the trees in it and thaws them',
  async () => {
    const { root, trees, members } = await startTree();
    // The time before a process is moved is not worth waiting for.
    const clock = { ...systemClock, after: (_: number, run: () => void) => systemClock.after(1, run) };
    const freezer = new Freezer(clock, pino({ level: 'silent' }), trees, `test-${process.pid}`);
    await freezer.open();
    freezer.add(() => root);
    const groupOf = async (pid: number) =>
      /^0::(.*)$/m.exec(await readFile(`/proc/${pid}/cgroup`, 'utf8'))?.[1] ?? '';
    for (const { pid } of members)
      await eventually(async () => expect(await groupOf(pid)).toContain('/sandboxd-'));
    const events = join(groups, await groupOf(root.pid), 'cgroup.events');
    await freezer.freeze([root]);
    expect(await readFile(events, 'utf8')).toMatch(/frozen 1/);
    for (const { pid } of members) expect(readStatNow(pid)?.state).not.toBe('T');
    await freezer.thaw();
    await eventually(async () => expect(await readFile(events, 'utf8')).toMatch(/frozen 0/));
    for (const { pid } of members) process.kill(pid, 'SIGKILL');
    await eventually(async () => expect(await readFile(events, 'utf8')).toMatch(/populated 0/));
    await freezer.close();
    await expect(readFile(events)).rejects.toMatchObject({ code: 'ENOENT' });
  },
);

test('what an earlier daemon stopped by signal is released', async () => {
  const { root, trees, members } = await startTree();
  await new Freezer(systemClock, pino({ level: 'silent' }), trees, 'unused').freeze([root]);
  await new Freezer(systemClock, pino({ level: 'silent' }), trees, 'unused').release([root]);
  for (const { pid } of members) await eventually(() => expect(readStatNow(pid)?.state).toBe('S'));
});

test('a tree holds nobody else: not the rest of the system, and not who has taken the number of an ended leader', async () => {
  const { members } = await startTree();
  const trees = new TreeFinder();
  const everybody = await trees.table.readAll();
  const [nobody, taken] = await trees.find([
    rootByTag('no such tag'),
    { ...rootByTag('no such tag'), pid: members[0]?.pid ?? 0 },
  ]);
  expect(everybody.size).toBeGreaterThan(3);
  expect(nobody).toEqual([]);
  expect(taken).toEqual([]);
});
