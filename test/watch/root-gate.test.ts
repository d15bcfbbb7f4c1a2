import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineOptions } from '../../src/watch/engine.ts';
import { CAN_MOUNT, unlessMounts } from '../support/rights.ts';
import { until, WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;
const warnings: string[] = [];
const mounts: string[] = [];

function watched(options: Partial<EngineOptions> = {}): WatchedTree {
  const warn = (_fields: object, message: string) => warnings.push(message);
  tree = new WatchedTree({ log: { debug: () => {}, info: () => {}, warn }, ...options });
  return tree;
}

function mount(...args: string[]): void {
  execFileSync('mount', args);
  mounts.push(args.at(-1) as string);
}

function unmount(path: string): void {
  execFileSync('umount', [path]);
  mounts.splice(mounts.indexOf(path), 1);
}

afterEach(async () => {
  await tree.engine?.stop();
  for (const path of [...mounts].reverse()) unmount(path);
  await tree.close();
  warnings.length = 0;
});

/** Puts a link in the place of the watched directory, which is `former` then. */
function replaceByLink(target: string): void {
  renameSync(tree.top, join(tree.base, 'former'));
  symlinkSync(target, tree.top);
}

async function untilWaiting(): Promise<void> {
  const state = () => [tree.engine.status(), tree.told().slice(0, 20)];
  await until(() => tree.engine.status().state === 'waiting' && tree.engine.status().queued === 0, state);
}

describe('a watch_dir that is replaced', () => {
  it.each(['/proc', '/sys'])(
    'by a link to %s is waited for, and nothing in there is told',
    async (target) => {
      watched().make('a');
      await tree.start();
      replaceByLink(target);
      await untilWaiting();
      expect(tree.told()).toEqual(['remove a']);
      expect(tree.engine.status().degraded).toMatch(/watch_dir/);
      expect(warnings).toHaveLength(1);
    },
  );

  it('by a link is waited for, told, and watched again as a directory', async () => {
    watched().make('a');
    mkdirSync(join(tree.base, 'other'));
    writeFileSync(join(tree.base, 'other', 'secret'), '');
    await tree.start();
    replaceByLink('other');
    await untilWaiting();
    expect(tree.told()).toEqual(['remove a']);
    expect(tree.engine.status().degraded).toMatch(/symbolic link, which is not followed/);
    unlinkSync(tree.top);
    renameSync(join(tree.base, 'former'), tree.top);
    const back = () => tree.told().length === 2;
    await until(back, () => tree.told());
    expect(tree.told()).toEqual(['remove a', 'create a']);
    expect(tree.engine.status()).toMatchObject({ state: 'watching', degraded: null });
  });

  it.skipIf(!CAN_MOUNT)(
    `by a pseudo file system, mounted over it, is waited for${unlessMounts}`,
    async () => {
      watched().make('a');
      await tree.start();
      mount('-t', 'proc', 'proc', tree.top);
      await tree.engine.reconcile('test');
      await untilWaiting();
      expect(tree.told()).toEqual(['remove a']);
      expect(tree.engine.status().degraded).toMatch(/proc/);
      unmount(tree.top);
      await until(
        () => tree.told().length === 2,
        () => tree.told(),
      );
      expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
    },
  );
});

describe('a watch_dir that was a link at the start', () => {
  it('is followed to a new target, with a warning, but not to a pseudo file system', async () => {
    watched();
    for (const name of ['one', 'two']) mkdirSync(join(tree.base, name));
    writeFileSync(join(tree.base, 'two', 'b'), '');
    symlinkSync('one', tree.top);
    await tree.start();
    const lead = (target: string) => {
      symlinkSync(target, join(tree.base, 'next'));
      renameSync(join(tree.base, 'next'), tree.top);
    };
    lead('two');
    await until(
      () => tree.told().length === 1,
      () => tree.told(),
    );
    expect(tree.told()).toEqual(['create b']);
    expect(warnings).toEqual(['watch_dir now leads to another directory']);
    lead('/proc');
    await untilWaiting();
    expect(tree.told()).toEqual(['create b', 'remove b']);
    expect(tree.engine.status().degraded).toMatch(/proc/);
  });

  it("is not followed to where the daemon's own files are", async () => {
    const own_paths: string[] = [];
    watched({ own_paths });
    const state = join(tree.base, 'lib', 'state');
    own_paths.push(state);
    for (const path of [state, join(tree.base, 'one')]) mkdirSync(path, { recursive: true });
    writeFileSync(join(state, 'outbox.db'), '');
    symlinkSync('one', tree.top);
    await tree.start();
    for (const target of ['lib', 'lib/state', '/']) {
      unlinkSync(tree.top);
      symlinkSync(target, tree.top);
      await untilWaiting();
      await tree.engine.reconcile('test');
      expect(tree.engine.status().degraded).toMatch(/the daemon's own files/);
    }
    expect(tree.told()).toEqual([]);
  });
});

describe('pseudo file systems in a watched directory', () => {
  it.skipIf(!CAN_MOUNT)(
    `are not watched, mounted before the start or later, and named as not covered${unlessMounts}`,
    async () => {
      watched().make('before/', 'later/');
      mount('-t', 'proc', 'proc', tree.at('before'));
      await tree.start();
      mount('-t', 'sysfs', 'sysfs', tree.at('later'));
      const told = await tree.told_since(async () => {
        await tree.engine.reconcile('test');
        tree.make('a/');
      });
      expect(told).toEqual(['create a']);
      expect(tree.engine.status().degraded).toMatch(
        /2 directories are on pseudo file systems \((proc|sysfs) at/,
      );
      unmount(tree.at('later'));
      await tree.engine.reconcile('test');
      expect(await tree.told_since(() => tree.make('later/x/'))).toEqual(['create later/x']);
      unmount(tree.at('before'));
      await tree.engine.reconcile('test');
      expect(tree.engine.status().degraded).toBeNull();
      rmSync(tree.at('before'), { recursive: true });
    },
  );
});
