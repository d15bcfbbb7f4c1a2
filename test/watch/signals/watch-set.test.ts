import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { emptyTree } from '../../../src/watch/index/stored-tree.ts';
import type { TreeNode } from '../../../src/watch/index/tree-node.ts';
import type { OnSignal, WatchFailure } from '../../../src/watch/signals/directory-watch.ts';
import { WatchSet } from '../../../src/watch/signals/watch-set.ts';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

describe('the watch set', () => {
  it('holds one watch per directory and gives it back', async () => {
    tree.make('a/b/', 'c/', 'f');
    await tree.start();
    expect(tree.engine.status().directories_watched).toBe(4);
    await tree.told_since(() => rmSync(tree.at('a'), { recursive: true }));
    expect(tree.engine.status().directories_watched).toBe(2);
  });
});

describe('a directory without a watch', () => {
  /** A watch set over watches that answer as `answer` says. */
  function watching() {
    const known = emptyTree('/w');
    const stat = { dev: 0, birth: 1, mode: 0o040755, uid: 0, gid: 0, size: 0, mtime: 1, ctime: 1, links: 1 };
    const dirs = ['a', 'b', 'c'].map((name, i) => known.add(known.root, name, { ...stat, ino: i + 2 }));
    const asked: string[] = [];
    const open = new Map<string, OnSignal>();
    const told: string[] = [];
    const state: { answer: (path: string) => WatchFailure | null } = { answer: () => null };
    const set = new WatchSet({
      watches: {
        watch: (path, onSignal) => {
          asked.push(path);
          const failure = state.answer(path);
          if (failure) return failure;
          open.set(path, onSignal);
          return () => void open.delete(path);
        },
        close: async () => void told.push('closed'),
      },
      pathOf: (dir: TreeNode) => known.path(dir),
      onSignal: (dir, signal, name) => void told.push(`${signal} ${dir.name}/${name}`),
      onReady: (dir) => void told.push(`ready ${dir.name}`),
      onGone: (dir) => void told.push(`gone ${dir.name}`),
    });
    return { set, state, asked, open, told, dirs: dirs as [TreeNode, TreeNode, TreeNode] };
  }

  it('at the limit is the last one that is tried, until the set is told to retry', () => {
    const { set, state, asked, told, dirs } = watching();
    state.answer = (path) => (path === '/w/a' ? null : 'limit');
    for (const dir of dirs) set.add(dir);
    expect([set.watched, set.refused, asked, set.example()]).toEqual([1, 2, ['/w/a', '/w/b'], '"/w/b"']);
    expect(told).toEqual(['ready a', 'ready b', 'ready c']);
    state.answer = () => null;
    set.retry();
    expect([set.watched, set.refused, set.example()]).toEqual([3, 0, '""']);
    expect(told.slice(3)).toEqual(['ready b', 'ready c']);
  });

  it('for lack of permission keeps no other from being watched, and can be renewed', () => {
    const { set, state, dirs } = watching();
    const [a, b] = dirs;
    state.answer = (path) => (path === '/w/a' ? 'unreadable' : null);
    for (const dir of dirs) set.add(dir);
    expect([set.watched, set.refused, set.isUnreadable(a), set.isUnreadable(b)]).toEqual([2, 0, true, false]);
    state.answer = () => null;
    set.renew(a);
    expect([set.watched, set.isUnreadable(a)]).toEqual([3, false]);
  });

  it('at the limit takes no watch from one that is renewed', () => {
    const { set, state, open, dirs } = watching();
    state.answer = () => (open.size < 1 ? null : 'limit');
    for (const dir of dirs) set.add(dir);
    set.renew(dirs[0]);
    expect([set.watched, set.refused, [...open.keys()]]).toEqual([1, 2, ['/w/a']]);
  });

  it('because it is gone is not in the set', () => {
    const { set, state, told, dirs } = watching();
    state.answer = () => 'gone';
    set.add(dirs[0]);
    expect([set.has(dirs[0]), told]).toEqual([false, ['gone a']]);
  });

  it('after it was dropped signals nothing, and after the stop none is added', async () => {
    const { set, asked, open, told, dirs } = watching();
    const [a, b, c] = dirs;
    set.add(a);
    set.add(a);
    set.add(b);
    open.get('/w/b')?.('rename', 'f', false);
    set.drop(a);
    set.drop(a);
    expect([[...open.keys()], asked, told.at(-1)]).toEqual([['/w/b'], ['/w/a', '/w/b'], 'rename b/f']);
    await set.stop();
    set.add(c);
    expect([open.size, set.watched, told.at(-1), asked.length]).toEqual([0, 0, 'closed', 2]);
  });
});
