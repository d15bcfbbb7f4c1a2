import { spawnSync } from 'node:child_process';
import { chmodSync, lstatSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SandboxDisks } from '../../../src/runtime/disk/sandbox-disks.ts';
import { FIRST_USER, pickUser, SandboxUsers, USER_COUNT } from '../../../src/runtime/walls/sandbox-users.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { publish, recordOf, refusing } from '../../support/runtime/ending-sandboxes.ts';
import { Sandboxes, spec, undeliveredRecord, webhook } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

it('users are from a range that nobody has, and never one that is taken', () => {
  const taken = new Set<number>();
  for (let i = 0; i < 2_000; i++) {
    const user = pickUser(taken);
    expect(taken.has(user)).toBe(false);
    expect(user).toBeGreaterThanOrEqual(FIRST_USER);
    expect(user).toBeLessThan(FIRST_USER + USER_COUNT);
    taken.add(user);
  }
  expect(new SandboxUsers({ hasUsers: () => false }, () => []).pick()).toBeNull();
});

/** Runs a program as a user of the host, in a folder that this program may enter. */
function asUser(user: number, cwd: string, shell: string) {
  const ids = ['--reuid', String(user), '--regid', String(user), '--clear-groups'];
  const { stdout, stderr } = spawnSync('setpriv', [...ids, 'sh', '-c', shell], { cwd, encoding: 'utf8' });
  return `${stdout}${stderr}`.trim();
}

/** A path without `setpriv` that works: as on a machine where sandboxes can have no users. */
function pathWithoutUsers(): string {
  const folder = scratchFolder();
  writeFileSync(join(folder, 'setpriv'), '#!/bin/sh\necho not here >&2; exit 1\n');
  chmodSync(join(folder, 'setpriv'), 0o755);
  return `${folder}:/usr/bin:/bin`;
}

describe.skipIf(!IS_ROOT)(`the user of a sandbox${IS_ROOT ? '' : ' (skipped: needs root)'}`, () => {
  it("is nobody else's, and everything of the sandbox is that user's, nothing of the manager", async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1'));
    await sandboxes.output('sbx-1', 'echo a secret > /root/secret; cp /bin/sh /tmp/sh; chmod 4755 /tmp/sh');
    await sandboxes.runtime.fork('sbx-1', spec('sbx-2'));
    const [one, two] = ['sbx-1', 'sbx-2'].map((id) => recordOf(sandboxes, id).user ?? 0) as [number, number];
    expect([one >= FIRST_USER, two >= FIRST_USER, one === two]).toEqual([true, true, false]);
    for (const [sandbox_id, user] of [
      ['sbx-1', one],
      ['sbx-2', two],
    ] as const) {
      const { directory, rootfs, control_socket } = sandboxes.files(sandbox_id);
      const daemon = recordOf(sandboxes, sandbox_id).daemon?.pid;
      expect(readFileSync(`/proc/${daemon}/status`, 'utf8')).toMatch(
        new RegExp(`^Uid:(\\t${user}){4}\nGid:(\\t${user}){4}$`, 'm'),
      );
      const owners = new Set(
        readdirSync(rootfs, { recursive: true, encoding: 'utf8' }).map(
          (path) => lstatSync(join(rootfs, path)).uid,
        ),
      );
      expect([...owners]).toEqual([user]);
      for (const path of ['sandbox.json', 'daemon.log', 'disk.img', 'disk']) {
        expect([path, statSync(join(directory, path)).uid]).toEqual([path, 0]);
        expect(statSync(join(directory, path)).mode & 0o077).toBe(0);
      }
      expect(statSync(control_socket).mode & 0o777).toBe(0o600);
    }
    const { rootfs } = sandboxes.files('sbx-1');
    expect(asUser(one, rootfs, 'cat root/secret')).toBe('a secret');
    expect(asUser(two, rootfs, 'cat root/secret')).toMatch(/Permission denied$/);
    expect(asUser(two, rootfs, 'echo more >> etc/hostname')).toMatch(/Permission denied$/);
    // Its own root's set-user-id program makes nobody its user on the host, and nobody root inside.
    expect(statSync(join(rootfs, 'tmp/sh')).mode & 0o4000).toBe(0o4000);
    expect(asUser(65_534, rootfs, 'tmp/sh -p -c "id -u"')).toBe('65534');
  });

  it('has no right of root on the host, also where nothing is mounted over', async () => {
    const sandboxes = await Sandboxes.open();
    await sandboxes.runtime.create(spec('sbx-1'));
    const user = recordOf(sandboxes, 'sbx-1').user ?? 0;
    const own = readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
    expect(asUser(user, '/', `echo '${own.trim()}' > /proc/sys/kernel/core_pattern`)).toMatch(
      /Permission denied$/,
    );
    expect(asUser(user, '/', 'chmod 666 /dev/null')).toMatch(/Operation not permitted$/);
    const daemon = recordOf(sandboxes, 'sbx-1').daemon?.pid;
    expect(readFileSync(`/proc/${daemon}/uid_map`, 'utf8')).toMatch(new RegExp(`^ +0 +${user} +1$`, 'm'));
  });

  it('is missing for a sandbox of an earlier version, which goes on, and whose fork has one', async () => {
    const data_dir = join(scratchFolder(), 'data');
    const machine = { path: pathWithoutUsers(), disks: new SandboxDisks('as before') };
    const limits = { node_memory_mib: 1_024 };
    const before = await Sandboxes.open('local', data_dir, undefined, limits, undefined, machine);
    expect(before.runtime.limitations()).toEqual([
      'sandboxes have no user of their own: not here',
      'the bandwidth of the disk is not divided: one sandbox may slow it down for all',
      'the disk of sandboxes is not limited: as before',
    ]);
    const consumer = await refusing();
    await before.runtime.create(spec('sbx-1', webhook(consumer.url)));
    const { user: _, ...record } = recordOf(before, 'sbx-1');
    writeFileSync(join(data_dir, 'sbx-1', 'sandbox.json'), JSON.stringify(record));
    await before.output('sbx-1', 'mkdir -p /work; echo kept > /work/file; chmod 700 /work');
    const { runtime, ...sandboxes } = await Sandboxes.open('local', data_dir);
    expect(await runtime.pause('sbx-1', null)).toBe('done');
    expect(await runtime.resume('sbx-1', null)).toBe('done');
    expect((await runtime.fork('sbx-1', spec('sbx-2'))).outcome).toBe('created');
    await runtime.resume('sbx-2', null);
    const after = new Sandboxes(sandboxes.data_dir, runtime);
    expect(await after.output('sbx-2', 'cat /work/file; echo more > /work/file; stat -c %u /work')).toBe(
      'kept\n0',
    );
    expect(recordOf(after, 'sbx-2').user).toBeGreaterThanOrEqual(FIRST_USER);
    const ids = await publish(after, 3);
    await runtime.end('sbx-1');
    const { records } = await undeliveredRecord(runtime, 'sbx-1');
    expect(records.map(({ event_id }) => event_id)).toEqual(expect.arrayContaining(ids));
    for (const sandbox_id of ['sbx-1', 'sbx-2']) await runtime.remove(sandbox_id);
    expect(readdirSync(data_dir)).toEqual([]);
  });
});
