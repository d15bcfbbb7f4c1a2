import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { hierarchyOf } from '../../../src/base/linux/cgroup.ts';
import { HeldMemory } from '../../../src/runtime/limits/held-memory.ts';
import { ResourceGroups } from '../../../src/runtime/limits/resource-groups.ts';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { groupParent, Sandboxes, spec } from '../../support/runtime/sandboxes.ts';
import { scratchFolder } from '../../support/scratch.ts';

const MIB = 1024 * 1024;

interface Group {
  version: 1 | 2;
  /** MiB. */
  holds: number;
  of_files: number;
  /** Files that the kernel has besides. */
  has?: string[];
  has_swap?: boolean;
}

/** A folder in the place of a sandbox's group, whose kernel gives nothing back. */
function madeGroup({ version, holds, of_files, has = [], has_swap = false }: Group) {
  const folder = scratchFolder();
  const group = join(folder, 'sbx-1');
  mkdirSync(group);
  const write = (file: string, content: string) => writeFileSync(join(group, file), content);
  const prefix = version === 1 ? 'total_' : '';
  write(version === 1 ? 'memory.usage_in_bytes' : 'memory.current', `${holds * MIB}\n`);
  write('memory.stat', `anon 1\n${prefix}inactive_file ${of_files * MIB}\n${prefix}active_file 0\n`);
  for (const file of has) write(file, 'untouched');
  const memory = new HeldMemory({ version, folder }, () => has_swap);
  return {
    bound: (lease_mib: number) => memory.bound('sbx-1', lease_mib, systemClock),
    read: (file: string) => (existsSync(join(group, file)) ? readFileSync(join(group, file), 'utf8') : null),
  };
}

describe('a paused sandbox is charged', () => {
  it('what it holds without its files, and room for its daemon, in version 1', async () => {
    const group = madeGroup({ version: 1, holds: 400, of_files: 200 });
    expect(await group.bound(512)).toBe(264);
    expect(group.read('memory.limit_in_bytes')).toBe(String(264 * MIB));
  });

  it('at least what a daemon may take, and at most its lease', async () => {
    for (const version of [1, 2] as const) {
      expect(await madeGroup({ version, holds: 40, of_files: 10 }).bound(512)).toBe(128);
      expect(await madeGroup({ version, holds: 127, of_files: 1 }).bound(128)).toBe(128);
    }
  });

  it('its files, too, where the kernel of version 2 is not to be asked for them', async () => {
    const group = madeGroup({ version: 2, holds: 400, of_files: 200 });
    expect(await group.bound(512)).toBe(401);
    expect(group.read('memory.max')).toBe(String(401 * MIB));
  });

  it('what the kernel of version 2 has not given back when it was asked', async () => {
    const group = madeGroup({ version: 2, holds: 400, of_files: 300, has: ['memory.reclaim'] });
    expect(await group.bound(512)).toBe(401);
    // A step of what it holds beyond 164 MiB.
    expect(group.read('memory.reclaim')).toBe(String(64 * MIB));
    const small = madeGroup({ version: 2, holds: 150, of_files: 20, has: ['memory.reclaim'] });
    expect(await small.bound(512)).toBe(194);
    expect(small.read('memory.reclaim')).toBe('untouched');
  });

  it('less where there is swap for the rest, which only paused ones have', async () => {
    const has = ['memory.reclaim', 'memory.swap.max'];
    const group = madeGroup({ version: 2, holds: 100, of_files: 0, has, has_swap: true });
    expect(await group.bound(512)).toBe(164);
    expect(group.read('memory.swap.max')).toBe(String(512 * MIB));
    expect(group.read('memory.reclaim')).toBe(String(36 * MIB));
    const mount = scratchFolder();
    const groups = ResourceGroups.open({ hierarchy: () => ({ version: 2, mount }) });
    groups.make('sbx-1', 512);
    const swap = join(mount, 'sandbox-manager/sbx-1/memory.swap.max');
    writeFileSync(swap, 'max');
    groups.limit('sbx-1', { memory_mib: 512, cpu_millis: 100 });
    expect(readFileSync(swap, 'utf8')).toBe('0');
  });

  it('its whole lease where its memory is not limited, or cannot be read', async () => {
    expect(await new HeldMemory(null).bound('sbx-1', 512, systemClock)).toBeNull();
    const memory = new HeldMemory({ version: 2, folder: scratchFolder() });
    expect(await memory.bound('sbx-1', 512, systemClock)).toBeNull();
    const folder = scratchFolder();
    mkdirSync(join(folder, 'sbx-1'));
    expect(await new HeldMemory({ version: 2, folder }).bound('sbx-1', 512, systemClock)).toBeNull();
  });
});

const missing = ResourceGroups.open().limitations(false).join('; ');

describe.skipIf(missing !== '')(
  `the memory of a real paused sandbox${missing && ` (skipped: ${missing})`}`,
  () => {
    const fill = (mib: number) =>
      `exec python3 -c "b = bytearray(b'x') * (${mib} << 20); import time; print('full', flush=True); time.sleep(600)"`;

    it('is bounded until it is resumed, and its files are given back for it', async () => {
      const sandboxes = await Sandboxes.open();
      const { runtime } = sandboxes;
      const version = hierarchyOf('memory')?.version;
      const limit_mib = () => {
        const group = join(hierarchyOf('memory')?.mount ?? '', groupParent(sandboxes.data_dir), 'sbx-1');
        const file = join(group, version === 1 ? 'memory.limit_in_bytes' : 'memory.max');
        return Number(readFileSync(file, 'utf8')) / MIB;
      };
      await runtime.create(spec('sbx-1', { memory_mib: 512 }));
      await sandboxes.output('sbx-1', 'dd if=/dev/zero of=/root/file bs=1M count=300 2>&1');
      await sandboxes.ask('sbx-1', 'POST', '/processes', { shell: `${fill(100)} > /root/said` });
      await eventually(async () => expect(await sandboxes.output('sbx-1', 'cat /root/said')).toBe('full'), {
        timeout: 20_000,
      });
      await runtime.pause('sbx-1', null);
      const held = runtime.heldMib('sbx-1') ?? 0;
      expect(held).toBeGreaterThan(100);
      expect(held).toBeLessThan(330);
      expect(limit_mib()).toBe(held);
      // A lease that is raised meanwhile begins with the resume.
      await runtime.change('sbx-1', { memory_mib: 640 });
      expect([limit_mib(), runtime.heldMib('sbx-1')]).toEqual([held, held]);
      await runtime.fork('sbx-1', spec('sbx-2', { memory_mib: 640 }));
      expect(runtime.heldMib('sbx-2')).toBe(128);
      await runtime.resume('sbx-1', null);
      expect([limit_mib(), runtime.heldMib('sbx-1')]).toEqual([640, null]);
    });

    it('is its daemon’s alone after a pause without memory, and its lease again after the resume', async () => {
      const sandboxes = await Sandboxes.open();
      const { runtime } = sandboxes;
      await runtime.create(spec('sbx-1', { memory_mib: 512 }));
      const fillAgain = async () => {
        await sandboxes.ask('sbx-1', 'POST', '/processes', { shell: `${fill(300)} > /root/said` });
        await eventually(async () => expect(await sandboxes.output('sbx-1', 'cat /root/said')).toBe('full'), {
          timeout: 20_000,
        });
      };
      await fillAgain();
      expect(await runtime.pause('sbx-1', null)).toBe('done');
      expect(runtime.heldMib('sbx-1')).toBeGreaterThan(300);
      expect(await runtime.resume('sbx-1', null, undefined, false)).toBe('emptied');
      await sandboxes.output('sbx-1', 'rm /root/said');
      await fillAgain();
      expect(await runtime.pause('sbx-1', null, undefined, false)).toBe('emptied');
      expect(runtime.heldMib('sbx-1')).toBe(128);
      expect(await runtime.resume('sbx-1', null)).toBe('emptied');
      expect(runtime.heldMib('sbx-1')).toBeNull();
    });

    it('is the node’s until it is given back: a node of 256 MiB holds two that are full', async () => {
      const sandboxes = await Sandboxes.open();
      const database = `sqlite:${join(scratchFolder(), 'manager.db')}`;
      const options = { node_memory: '256Mi', node_sandboxes: '10' };
      const manager = await startManager(database, { runtime: sandboxes.runtime, options });
      const client = await manager.client('team_1', 'sandboxes:write');
      const resources = { memory: '128Mi', disk: '128Mi' };
      const ids: string[] = [];
      for (let i = 0; i < 2; i++) {
        const id = await client.claim({ resources });
        ids.push(id);
        await sandboxes.ask(id, 'POST', '/processes', { shell: `${fill(64)} > /root/said` });
        await eventually(async () => expect(await sandboxes.output(id, 'cat /root/said')).toBe('full'), {
          timeout: 20_000,
        });
        expect((await client.post(`/api/v1/sandboxes/${id}/pause`)).status).toBe(200);
      }
      const refused = {
        status: 503,
        error: {
          code: 'capacity_exhausted',
          message:
            'The node does not have enough memory left: 128Mi are needed, 0Mi are free. A smaller resources.memory asks for less.',
          details: { resource: 'memory', requested: '128Mi', available: '0Mi' },
        },
      };
      expect(await client.post('/api/v1/sandboxes', { config: { resources } })).toMatchObject(refused);
      expect(await client.post(`/api/v1/sandboxes/${ids[0]}/fork`)).toMatchObject(refused);
      expect((await client.call('DELETE', `/api/v1/sandboxes/${ids[1]}`)).status).toBe(202);
      await eventually(
        async () =>
          expect((await client.post('/api/v1/sandboxes', { config: { resources } })).status).toBe(201),
        { timeout: 20_000 },
      );
      expect((await client.post(`/api/v1/sandboxes/${ids[0]}/resume`)).status).toBe(200);
    });
  },
);
