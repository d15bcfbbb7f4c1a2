import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../../src/base/clock.ts';
import { createLog } from '../../../../../src/base/log.ts';
import { Subscription } from '../../../../../src/daemon/api/files/watch/subscription.ts';
import { WatchedTrees } from '../../../../../src/daemon/api/files/watch/watched-trees.ts';
import { eventually } from '../../../../support/eventually.ts';
import { scratchFolder } from '../../../../support/scratch.ts';

let folder: string;
let trees: WatchedTrees;

beforeEach(() => {
  folder = scratchFolder();
  trees = new WatchedTrees({ clock: systemClock, log: createLog('silent'), own_paths: [] });
  onTestFinished(() => trees.stop());
});

/** What the kernel watches for this process: how many indexes, and how many directories in all. */
function watched(): { indexes: number; directories: number } {
  const directories = readdirSync('/proc/self/fdinfo').map((fd) => {
    try {
      return readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8').match(/^inotify wd:/gm)?.length ?? 0;
    } catch {
      return 0;
    }
  });
  return {
    indexes: directories.filter((each) => each > 0).length,
    directories: directories.reduce((sum, each) => sum + each, 0),
  };
}

const NOTHING = { indexes: 0, directories: 0 };

/** A client, whose events are relative to the folder. */
async function subscribe(path: string, recursive: boolean) {
  const sent: { type: string; event?: string; path?: string; old_path?: string }[] = [];
  const client = { is_behind: false, room: Promise.withResolvers<void>() };
  const link = {
    isBehind: () => client.is_behind,
    caughtUp: () => client.room.promise,
    send: (message: object) => sent.push(message as (typeof sent)[number]),
    onFailure: (_: string, error: unknown) => {
      throw error;
    },
  };
  const real = path === '' ? folder : join(folder, path);
  const subscription = new Subscription({ watch_id: 'w', path: real, real, recursive, trees, link });
  await subscription.start();
  const events = () =>
    sent.map(({ type, event, path, old_path }) =>
      type === 'event'
        ? [event, path, old_path]
            .filter((each) => each !== undefined)
            .map((each) => String(each).replace(folder, ''))
        : [type],
    );
  return { client, subscription, events };
}

describe('subscriptions whose trees overlap', () => {
  it('share one index, in whatever order they come, and each is told what is below its own path', async () => {
    mkdirSync(join(folder, 'a/b/c'), { recursive: true });
    mkdirSync(join(folder, 'x'));
    const alone = await subscribe('', true);
    const whole = watched();
    expect(whole).toEqual({ indexes: 1, directories: expect.any(Number) });
    expect(whole.directories).toBeGreaterThanOrEqual(5);
    await alone.subscription.stop();
    await eventually(() => expect(watched()).toEqual(NOTHING));
    const child = await subscribe('a/b', true);
    const flat = await subscribe('a', false);
    const sibling = await subscribe('x', true);
    expect(watched().indexes).toBe(3);
    const [parent, second] = await Promise.all([subscribe('', true), subscribe('', true)]);
    const grandchild = await subscribe('a/b/c', true);
    await eventually(() => expect(watched()).toEqual(whole));
    writeFileSync(join(folder, 'a/b/c/f'), '');
    writeFileSync(join(folder, 'a/g'), '');
    writeFileSync(join(folder, 'x/h'), '');
    const [f, g, h] = ['/a/b/c/f', '/a/g', '/x/h'].map((path) => ['create', path]);
    await eventually(() => {
      expect(parent.events().sort()).toEqual([f, g, h]);
      expect(second.events().sort()).toEqual([f, g, h]);
      expect([child, flat, sibling, grandchild].map(({ events }) => events())).toEqual([[f], [g], [h], [f]]);
    });
    for (const { subscription } of [parent, second]) await subscription.stop();
    writeFileSync(join(folder, 'a/b/later'), '');
    await eventually(() => expect(child.events().at(-1)).toEqual(['create', '/a/b/later']));
    for (const { subscription } of [child, flat, sibling, grandchild]) await subscription.stop();
    await eventually(() => expect(watched()).toEqual(NOTHING));
  });

  it('lose nothing where one takes the others over while files change', async () => {
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    const child = await subscribe('a/b', true);
    const known = new Set<string>();
    const alive = new Set<string>();
    for (let i = 0; i < 300; i++) {
      if (i === 100) void subscribe('', true);
      if (i === 150) void subscribe('a', true);
      writeFileSync(join(folder, 'a/b', `f${i}`), '');
      alive.add(`/a/b/f${i}`);
      if (i % 3 === 0) {
        rmSync(join(folder, 'a/b', `f${i}`));
        alive.delete(`/a/b/f${i}`);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    await eventually(() => {
      known.clear();
      for (const [event, path] of child.events()) {
        if (event === 'create') known.add(path as string);
        if (event === 'remove') known.delete(path as string);
      }
      expect([...known].sort()).toEqual([...alive].sort());
      expect(watched().indexes).toBe(1);
    });
    expect(child.events().filter(([event]) => event === 'overflow')).toEqual([]);
  });

  it('are told of what comes and goes with a directory that moves across their border, or above them', async () => {
    mkdirSync(join(folder, 'a/b/c'), { recursive: true });
    mkdirSync(join(folder, 'in/deep'), { recursive: true });
    writeFileSync(join(folder, 'in/deep/file'), '');
    writeFileSync(join(folder, 'a/b/c/file'), '');
    const parent = await subscribe('', true);
    const child = await subscribe('a/b', true);
    renameSync(join(folder, 'in'), join(folder, 'a/b/in'));
    await eventually(() =>
      expect(child.events()).toEqual([
        ['create', '/a/b/in'],
        ['create', '/a/b/in/deep'],
        ['create', '/a/b/in/deep/file'],
      ]),
    );
    renameSync(join(folder, 'a/b/in/deep'), join(folder, 'deep'));
    await eventually(() =>
      expect(child.events().slice(3)).toEqual([
        ['remove', '/a/b/in/deep/file'],
        ['remove', '/a/b/in/deep'],
      ]),
    );
    renameSync(join(folder, 'a'), join(folder, 'other'));
    await eventually(() =>
      expect(child.events().slice(5).sort()).toEqual([
        ['remove', '/a/b'],
        ['remove', '/a/b/c'],
        ['remove', '/a/b/c/file'],
        ['remove', '/a/b/in'],
      ]),
    );
    renameSync(join(folder, 'other'), join(folder, 'a'));
    await eventually(() => expect(child.events().slice(9)).toHaveLength(4));
    expect(parent.events()).toEqual([
      ['rename', '/a/b/in', '/in'],
      ['rename', '/deep', '/a/b/in/deep'],
      ['rename', '/other', '/a'],
      ['rename', '/a', '/other'],
    ]);
  });

  it('are each held up by their own client alone, and share the index also after an overflow', async () => {
    const slow = await subscribe('', true);
    const quick = await subscribe('', true);
    const before = watched();
    slow.client.is_behind = true;
    for (let i = 0; i < 50; i++) writeFileSync(join(folder, `f${i}`), '');
    await eventually(() => expect(quick.events()).toHaveLength(50));
    rmSync(join(folder, 'f0'));
    await eventually(() => expect(quick.events().at(-1)).toEqual(['remove', '/f0']));
    expect(slow.events()).toEqual([]);
    slow.client.is_behind = false;
    slow.client.room.resolve();
    await eventually(() => expect(slow.events()).toHaveLength(50));
    expect(slow.events()[0]).toEqual(['overflow']);
    expect(slow.events()).not.toContainEqual(['create', '/f0']);
    expect(watched()).toEqual(before);
  });
});
