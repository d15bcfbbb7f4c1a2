import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { type Hierarchy, hierarchyOf } from '../../../src/base/linux/cgroup.ts';
import { MachineShare, processShare, socketShare } from '../../../src/runtime/limits/machine-share.ts';
import { ResourceGroups } from '../../../src/runtime/limits/resource-groups.ts';
import { eventually } from '../../support/eventually.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { recordOf } from '../../support/runtime/ending-sandboxes.ts';
import { groupParent, Sandboxes, spec } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const LIMITS = { memory_mib: 256, cpu_millis: 100 };
/** A sandbox of 256 MiB may have 75 processes, all together 300. */
const FEW = new MachineShare(300, 1_024, { least: 1, most: 300 });

/** A folder in the place of a hierarchy for each controller; null for those that are missing. */
function hierarchies(version: Hierarchy['version'], missing: string[] = []) {
  const folder = scratchFolder();
  return (controller: string): Hierarchy | null => {
    const mount = version === 2 ? folder : join(folder, controller);
    mkdirSync(mount, { recursive: true });
    return missing.includes(controller) ? null : { version, mount };
  };
}

/** What this machine lacks besides: the kernel freezes only for whoever may write to its control groups. */
const lacks = (groups: ResourceGroups) => [groups.frozen.limitation()].filter((phrase) => phrase !== null);

describe('the limits of a sandbox', () => {
  it('are written to one control group of version 2', () => {
    const hierarchy = hierarchies(2);
    const groups = ResourceGroups.open({ hierarchy });
    expect(groups.limitations(false)).toEqual(lacks(groups));
    const mount = hierarchy('memory')?.mount ?? '';
    expect(readFileSync(join(mount, 'cgroup.subtree_control'), 'utf8')).toBe('+pids');
    const group = join(mount, 'sandbox-manager', 'sbx-1');
    expect(groups.make('sbx-1', 256)).toEqual([join(group, 'cgroup.procs')]);
    groups.limit('sbx-1', LIMITS);
    expect(readFileSync(join(group, 'memory.max'), 'utf8')).toBe('268435456');
    expect(readFileSync(join(group, 'cpu.weight'), 'utf8')).toBe('10');
    expect(readFileSync(join(group, 'cpu.max'), 'utf8')).toBe('100000 100000');
    groups.limit('sbx-1', { ...LIMITS, cpu_millis: 2_500 });
    expect(readFileSync(join(group, 'cpu.weight'), 'utf8')).toBe('250');
    expect(readFileSync(join(group, 'cpu.max'), 'utf8')).toBe('250000 100000');
    expect(Number(readFileSync(join(group, 'pids.max'), 'utf8'))).toBe(processShare(null).of(256));
  });

  it('are written to a control group of each controller in version 1', () => {
    const hierarchy = hierarchies(1);
    const groups = ResourceGroups.open({ hierarchy, processes: FEW });
    const file = (controller: string, name: string) =>
      join(hierarchy(controller)?.mount ?? '', 'sandbox-manager', 'sbx-1', name);
    expect(groups.make('sbx-1', 256)).toEqual(
      ['memory', 'cpu', 'pids'].map((controller) => file(controller, 'cgroup.procs')),
    );
    expect(readFileSync(file('pids', 'pids.max'), 'utf8')).toBe('75');
    expect(readFileSync(file('pids', '../pids.max'), 'utf8')).toBe('300');
    groups.limit('sbx-1', LIMITS);
    expect(readFileSync(file('memory', 'memory.limit_in_bytes'), 'utf8')).toBe('268435456');
    expect(readFileSync(file('cpu', 'cpu.cfs_period_us'), 'utf8')).toBe('100000');
    expect(readFileSync(file('cpu', 'cpu.cfs_quota_us'), 'utf8')).toBe('100000');
    expect(readFileSync(file('cpu', 'cpu.shares'), 'utf8')).toBe('102');
    groups.limit('sbx-1', { ...LIMITS, memory_mib: 512 });
    expect(readFileSync(file('pids', 'pids.max'), 'utf8')).toBe('150');
  });

  it('leave a paused one what it has, which is charged by its processes, too', async () => {
    const hierarchy = hierarchies(1);
    const processes = new MachineShare(4_096, 1_024, { least: 1, most: 4_096 });
    const groups = ResourceGroups.open({ hierarchy, processes });
    groups.make('sbx-1', 512);
    const file = (controller: string, name: string) =>
      join(hierarchy(controller)?.mount ?? '', 'sandbox-manager', 'sbx-1', name);
    writeFileSync(file('memory', 'memory.usage_in_bytes'), '1000');
    writeFileSync(file('memory', 'memory.stat'), '');
    writeFileSync(file('pids', 'pids.current'), '1200');
    expect(await groups.hold('sbx-1', 512, systemClock)).toBe(300);
    expect(readFileSync(file('pids', 'pids.max'), 'utf8')).toBe('1520');
    writeFileSync(file('pids', 'pids.current'), '12');
    expect(await groups.hold('sbx-1', 512, systemClock)).toBe(128);
    expect(readFileSync(file('pids', 'pids.max'), 'utf8')).toBe('332');
    groups.limit('sbx-1', LIMITS);
    expect(readFileSync(file('pids', 'pids.max'), 'utf8')).toBe('1024');
  });

  it('are named where they cannot be held, and the others hold', async () => {
    const some = ResourceGroups.open({ hierarchy: hierarchies(1, ['cpu']) });
    expect(some.limitations(false)).toEqual([
      'the CPU time of sandboxes is not limited: one may take all that this machine has (no control groups with cpu are mounted)',
      ...lacks(some),
    ]);
    expect(some.make('sbx-1', 256)).toHaveLength(2);
    expect(some.userProcessesMax(256)).toBeNull();
    const others = ResourceGroups.open({ hierarchy: hierarchies(1, ['pids']), processes: FEW });
    expect(others.userProcessesMax(256)).toBe(75);
    expect([true, false].flatMap((has_users) => others.limitations(has_users))).toEqual([
      'the number of processes of a sandbox is limited by its user alone: no control groups with pids are mounted',
      ...lacks(others),
      'the number of processes of a sandbox is not limited: one may take all that this machine has (no control groups with pids are mounted)',
      ...lacks(others),
    ]);
    const file = join(scratchFolder(), 'file');
    writeFileSync(file, '');
    const none = ResourceGroups.open({ hierarchy: () => ({ version: 1, mount: file }) });
    const named = none.limitations(false).filter((line) => !lacks(none).includes(line));
    expect(named).toHaveLength(3);
    for (const line of named) {
      expect(line).toMatch(
        /\(control groups cannot be made: not a directory, .*; run the manager as root, .*\)$/,
      );
    }
    expect(none.make('sbx-1', 256)).toEqual([]);
    none.limit('sbx-1', LIMITS);
    await none.remove('sbx-1', systemClock);
  });

  const is_root = IS_ROOT;
  it.skipIf(!is_root)(
    'are named where a manager of another user made the groups (skipped: without root)',
    () => {
      const mount = scratchFolder();
      chmodSync(mount, 0o755);
      mkdirSync(join(mount, 'sandbox-manager'), { mode: 0o755 });
      const groups = pathToFileURL(
        join(import.meta.dirname, '../../../src/runtime/limits/resource-groups.ts'),
      );
      const script = `const { ResourceGroups } = await import('${groups}');
const groups = ResourceGroups.open({ hierarchy: () => ({ version: 1, mount: '${mount}' }) });
console.log(groups.limitations(false).length, groups.make('sbx-1', 256).length);`;
      // Memory, CPU time, processes, and the freezing of them.
      const as_nobody = ['--reuid', '65534', '--clear-groups', process.execPath, '--input-type=module', '-e'];
      expect(execFileSync('setpriv', [...as_nobody, script], { encoding: 'utf8' })).toBe('4 0\n');
    },
  );

  it('are none for a sandbox that was made without groups', async () => {
    const hierarchy = hierarchies(1);
    const groups = ResourceGroups.open({ hierarchy });
    groups.limit('sbx-1', LIMITS);
    await groups.remove('sbx-1', systemClock);
    expect(groups.limitations(false)).toEqual(lacks(groups));
  });
});

/** Starts processes until one is refused; prints the error and how many there were. */
const BOMB = `import os, signal, time
children = []
try:
  while True:
    child = os.fork()
    if child == 0:
      time.sleep(60)
    children.append(child)
except OSError as error:
  print(error.errno, len(children))
for child in children:
  os.kill(child, signal.SIGKILL)`;

/** Fills the buffers of connections that nobody reads, and says how many it has. */
const UNREAD = `
import socket
kept = []
for _ in range(60):
  listener = socket.create_server(("127.0.0.1", 0))
  sender = socket.create_connection(listener.getsockname())
  sender.setblocking(False)
  kept += [listener, sender, listener.accept()[0]]
  try:
    while sender.send(bytes(1 << 20)):
      pass
  except BlockingIOError:
    pass
print(len(kept))`;

const why = ResourceGroups.open().limitations(false).join('; ');

describe.skipIf(why !== '')(`the limits of a real sandbox${why && ` (skipped: ${why})`}`, () => {
  const group = (sandboxes: Sandboxes, controller: string) =>
    join(hierarchyOf(controller)?.mount ?? '', groupParent(sandboxes.data_dir), 'sbx-1');

  it('hold for its daemon and its processes, and its groups go with it', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1', { memory_mib: 256, cpu_millis: 1_500 }));
    const [memory, cpu] = [hierarchyOf('memory'), hierarchyOf('cpu')];
    expect(
      readFileSync(
        join(group(sandboxes, 'memory'), memory?.version === 1 ? 'memory.limit_in_bytes' : 'memory.max'),
        'utf8',
      ).trim(),
    ).toBe('268435456');
    expect(
      readFileSync(
        join(group(sandboxes, 'cpu'), cpu?.version === 1 ? 'cpu.cfs_quota_us' : 'cpu.max'),
        'utf8',
      ).trim(),
    ).toMatch(/^150000/);
    const pids = readFileSync(join(group(sandboxes, 'pids'), 'cgroup.procs'), 'utf8')
      .trim()
      .split('\n');
    expect(pids.length).toBeGreaterThanOrEqual(3); // bubblewrap, the init and the daemon
    const hog = 'python3 -c "b = bytearray(400 << 20); print(len(b))"';
    // Where the machine has swap, too much goes there.
    const has_swap = readFileSync('/proc/swaps', 'utf8').trim().includes('\n');
    if (!has_swap) expect((await sandboxes.run('sbx-1', hog)).exit_code).not.toBe(0);
    expect(await sandboxes.runtime.inspect('sbx-1')).toBe('running');
    await sandboxes.runtime.change('sbx-1', { memory_mib: 768 });
    expect(await sandboxes.output('sbx-1', hog)).toBe(String(400 << 20));
    const keep = { shell: 'python3 -c "b = bytearray(300 << 20); import time; time.sleep(60)"' };
    const { process_id } = await sandboxes.ask('sbx-1', 'POST', '/processes', keep);
    const used = () =>
      Number(readFileSync(join(group(sandboxes, 'memory'), 'memory.usage_in_bytes'), 'utf8'));
    if (memory?.version === 1) {
      await eventually(() => expect(used()).toBeGreaterThan(300 << 20), { timeout: 60_000 });
      await expect(sandboxes.runtime.change('sbx-1', { memory_mib: 128 })).rejects.toMatchObject({
        code: 'conflict',
        message: 'The sandbox uses more memory than that.',
      });
      expect(recordOf(sandboxes, 'sbx-1').memory_mib).toBe(768);
      expect(await sandboxes.ask('sbx-1', 'GET', `/processes/${process_id}`)).toMatchObject({
        state: 'running',
      });
    }
    await sandboxes.runtime.remove('sbx-1');
    for (const controller of ['memory', 'cpu', 'pids']) {
      expect(existsSync(group(sandboxes, controller))).toBe(false);
    }
  });

  it.skipIf(hierarchyOf('memory')?.version !== 1)('hold for what its sockets keep', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1', { memory_mib: 128 }));
    const own = (name: string) =>
      Number(readFileSync(join(group(sandboxes, 'memory'), `memory.kmem.tcp.${name}`), 'utf8'));
    const pages = (bytes: number) => bytes - (bytes % 4_096);
    expect(own('limit_in_bytes')).toBe(pages(socketShare(null).of(128)));
    expect(await sandboxes.output('sbx-1', `python3 -c '${UNREAD}'`)).toBe('180');
    // Each socket has a little whatever the limit; without one they hold 200 MB.
    expect(own('max_usage_in_bytes')).toBeGreaterThan(own('limit_in_bytes') / 2);
    expect(own('max_usage_in_bytes')).toBeLessThan(own('limit_in_bytes') * 3);
    await sandboxes.runtime.change('sbx-1', { memory_mib: 1_024 });
    expect(own('limit_in_bytes')).toBe(pages(socketShare(null).of(1_024)));
  });

  const by_user = IS_ROOT ? [['its user', ['pids']] as const] : [];

  it.for([['a control group', []], ...by_user] as [string, string[]][])(
    'keep a fork bomb in its sandbox: by %s',
    async ([_, missing]) => {
      const hierarchy = (controller: string) =>
        missing.includes(controller) ? null : hierarchyOf(controller);
      const limits = { processes: new MachineShare(3_000, 1_024, { least: 64, most: 64 }), hierarchy };
      const sandboxes = await Sandboxes.open('local', join(scratchFolder(), 'data'), [], limits);
      await sandboxes.runtime.create(spec('sbx-1'));
      await sandboxes.runtime.create(spec('sbx-2'));
      const [error, count] = (await sandboxes.output('sbx-1', `python3 -c '${BOMB}'`)).split(' ').map(Number);
      expect(error).toBe(11);
      expect(count).toBeLessThan(64);
      const bomb = sandboxes.ask('sbx-1', 'POST', '/processes', { shell: 'b() { b | b & }; b; sleep 60' });
      await bomb;
      expect(await sandboxes.output('sbx-2', '(sleep 0.01 & wait); echo works')).toBe('works');
      await sandboxes.runtime.end('sbx-1');
      await sandboxes.runtime.remove('sbx-1');
      expect(await sandboxes.runtime.inspect('sbx-2')).toBe('running');
    },
  );
});
