import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { SandboxDisks } from '../../../src/runtime/disk/sandbox-disks.ts';
import { killMarked } from '../../../src/runtime/local/host-process.ts';
import { LoopDisk } from '../../faults/support/loop-disk.ts';
import { fault } from '../../faults/support/scene.ts';
import { missing } from '../../faults/support/tools.ts';
import { publish, recordOf, refusing } from '../../support/runtime/ending-sandboxes.ts';
import { Sandboxes, spec, undeliveredRecord, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MIB = 1024 * 1024;
/** Until nothing more can be written, in large pieces and small ones. */
const FILL = `head -c 1G /dev/zero > /root/fill
for path in /root /tmp /var /run/sandboxd; do while echo more >> $path/more; do :; done; done; true`;

const absent = missing(['root', 'loop device']);

/** The mounts and the loop devices of a folder. */
function leftOf(folder: string): string[] {
  const loops = execFileSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']).toString();
  const lines = `${readFileSync('/proc/mounts', 'utf8')}\n${loops}`.split('\n');
  return lines.filter((line) => line.includes(folder));
}

/** Writes until nothing more fits. */
function fill(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (const bytes of [MIB, 4096]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      }
    }
  } finally {
    closeSync(file);
  }
}

const idsOf = async (sandboxes: Sandboxes) =>
  (await undeliveredRecord(sandboxes.runtime, 'sbx-1')).records.map(({ event_id }) => event_id);

describe.skipIf(absent)(`the disk of a sandbox${absent ? ` (skipped: needs ${absent})` : ''}`, () => {
  it('that is full harms no other sandbox, and its records are handed over', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    const consumer = await refusing();
    await runtime.create(spec('sbx-1', { ...webhook(consumer.url), disk_mib: 128 }));
    const ids = await publish(sandboxes, 40);
    await sandboxes.run('sbx-1', FILL);
    const { blocks } = statSync(sandboxes.files('sbx-1').disk_image);
    expect(blocks * 512).toBeLessThan(129 * MIB);
    await expect(publish(sandboxes, 2000)).rejects.toThrow('outbox_unavailable');
    await runtime.create(spec('sbx-2', webhook(consumer.url)));
    expect(await sandboxes.output('sbx-2', 'head -c 20M /dev/zero > /root/mine; sync; echo works')).toBe(
      'works',
    );
    const sent = sandboxes.ask('sbx-2', 'POST', '/webhook/publish', { payload: {} });
    expect(await sent).toMatchObject({ event_id: expect.any(String) });
    await runtime.end('sbx-1');
    expect(await idsOf(sandboxes)).toEqual(expect.arrayContaining(ids));
    await runtime.remove('sbx-1');
    expect(leftOf(join(sandboxes.data_dir, 'sbx-1'))).toEqual([]);
    expect(await runtime.inspect('sbx-2')).toBe('running');
  });

  it('hands its records over, and goes, while the disk of the node is full', async () => {
    const folder = scratchFolder();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=400m', 'tmpfs', folder]);
    onTestFinished(() => void execFileSync('umount', ['--lazy', folder]));
    const sandboxes = await Sandboxes.open('local', join(folder, 'data'));
    const { runtime } = sandboxes;
    const consumer = await refusing();
    await runtime.create(spec('sbx-1', { ...webhook(consumer.url), disk_mib: 128 }));
    const ids = await publish(sandboxes, 40);
    fill(join(folder, 'filler'));
    ids.push(...(await publish(sandboxes, 10)));
    await killMarked(systemClock, join(sandboxes.data_dir, 'sbx-1'));
    expect(await runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
    expect(await idsOf(sandboxes)).toEqual(expect.arrayContaining(ids));
    await runtime.remove('sbx-1');
    expect(await runtime.list()).toEqual([]);
    expect(leftOf(join(sandboxes.data_dir, 'sbx-1'))).toEqual([]);
  });

  it('is copied into a disk of its own by a fork, and mounted without setuid and device nodes', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1', { disk_mib: 256 }));
    await sandboxes.output('sbx-1', 'head -c 60M /dev/urandom > /root/data; truncate -s 10G /root/holes');
    await runtime.fork('sbx-1', spec('sbx-2', { disk_mib: 256 }));
    await runtime.resume('sbx-2', null);
    const sum = 'sha256sum < /root/data';
    expect(await sandboxes.output('sbx-2', sum)).toBe(await sandboxes.output('sbx-1', sum));
    expect((await sandboxes.run('sbx-2', 'head -c 300M /dev/zero > /root/fill')).exit_code).not.toBe(0);
    expect(await sandboxes.output('sbx-1', 'head -c 60M /dev/zero > /root/more; sync; echo fits')).toBe(
      'fits',
    );
    const options = leftOf(sandboxes.data_dir).find((line) => line.includes('sbx-2/disk '));
    expect(options).toMatch(/\bext4 rw,nosuid,nodev,/);
  });

  it('is found again by the next manager, also where it is no longer mounted', async () => {
    const sandboxes = await Sandboxes.open();
    const consumer = await refusing();
    await sandboxes.runtime.create(spec('sbx-1', webhook(consumer.url)));
    const ids = await publish(sandboxes, 5);
    // As after a restart of the machine.
    await killMarked(systemClock, join(sandboxes.data_dir, 'sbx-1'));
    execFileSync('umount', [sandboxes.files('sbx-1').disk]);
    const second = await Sandboxes.open('local', sandboxes.data_dir);
    expect(await second.runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
    expect(await idsOf(second)).toEqual(expect.arrayContaining(ids));
  });

  it('leaves no mount and no loop device behind where its creation was interrupted, wherever that was', async () => {
    const sandboxes = await Sandboxes.open();
    const { runtime } = sandboxes;
    await runtime.create(spec('sbx-1'));
    const files = sandboxes.files('sbx-1');
    writeFileSync(
      join(files.directory, 'sandbox.json'),
      JSON.stringify({ ...recordOf(sandboxes, 'sbx-1'), state: 'creating' }),
    );
    await runtime.remove('sbx-1');
    expect(leftOf(sandboxes.data_dir)).toEqual([]);
    const disks = new SandboxDisks(null);
    execFileSync('mkdir', ['-p', files.directory]);
    await disks.make(files, 128, async () => {});
    expect(leftOf(sandboxes.data_dir)).not.toEqual([]);
    await runtime.create(spec('sbx-1'));
    await runtime.remove('sbx-1');
    execFileSync('mkdir', ['-p', files.disk]);
    writeFileSync(files.disk_image, 'half of a');
    await runtime.remove('sbx-1');
    expect([existsSync(files.directory), leftOf(sandboxes.data_dir)]).toEqual([false, []]);
  });

  it('is kept by no other sandbox that was there meanwhile', async () => {
    const sandboxes = await Sandboxes.open('local', join(scratchFolder(), 'a * b'));
    const { runtime } = sandboxes;
    for (const sandbox_id of ['sbx-1', 'sbx-2', 'sbx-3']) await runtime.create(spec(sandbox_id));
    await runtime.remove('sbx-1');
    expect(leftOf(join(sandboxes.data_dir, 'sbx-1'))).toEqual([]);
    const devices = execFileSync('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE']).toString();
    expect(
      devices.split('\n').filter((line) => line.includes('(deleted)') && line.includes('a * b')),
    ).toEqual([]);
  });

  fault(
    'has what its daemon acknowledged after a power cut of the machine',
    { needs: ['root', 'loop device', 'xfs_io'] },
    async (scene) => {
      const disk = new LoopDisk(scene, 300);
      const consumer = await refusing();
      const sandboxes = await Sandboxes.open('local', disk.path('data'));
      await sandboxes.runtime.create(spec('sbx-1', { ...webhook(consumer.url), disk_mib: 128 }));
      const ids = await publish(sandboxes, 60);
      disk.cutPower();
      const { directory, disk: mounted } = sandboxes.files('sbx-1');
      await killMarked(systemClock, directory);
      execFileSync('umount', [mounted]);
      disk.again();
      const second = await Sandboxes.open('local', disk.path('data'));
      expect(await second.runtime.end('sbx-1')).toEqual({ outcome: 'lost' });
      expect(await idsOf(second)).toEqual(expect.arrayContaining(ids));
      for (const sandbox_id of await second.runtime.list()) await second.runtime.remove(sandbox_id);
    },
  );
});

it('disks that the machine cannot bound are a limitation, by name', async () => {
  const folder = scratchFolder();
  const disks = new SandboxDisks('they are not wanted');
  await disks.check(folder);
  expect(disks.limitations()).toEqual(['the disk of sandboxes is not limited: they are not wanted']);
  // A file system that cannot be written to.
  const machine = new SandboxDisks(null);
  await machine.check('/proc/self/fdinfo').catch(() => {});
  expect(disks.limitations()).toHaveLength(1);
});
