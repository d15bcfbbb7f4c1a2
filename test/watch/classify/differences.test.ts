import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FileModified } from '../../../src/contract/events.ts';
import { differences } from '../../../src/watch/classify/differences.ts';
import { emptyTree } from '../../../src/watch/index/stored-tree.ts';
import type { Tree } from '../../../src/watch/index/tree.ts';
import type { TreeNode } from '../../../src/watch/index/tree-node.ts';

const ROOT = '/r';

/** What a path holds: its inode, a negative one for a directory, and its size. */
type Files = Map<string, { ino: number; size: number }>;

/** A tree of these paths, each after the directory that it is in. */
function treeOf(files: Files, root = ROOT): Tree {
  const tree = emptyTree(root);
  const nodes = new Map<string, TreeNode>([[root, tree.root]]);
  for (const [path, { ino, size }] of files) {
    const cut = path.lastIndexOf('/');
    const parent = nodes.get(path.slice(0, cut));
    if (!parent) continue;
    const mode = ino < 0 ? 0o40755 : 0o100644;
    const stat = {
      dev: 0,
      ino: Math.abs(ino),
      birth: 1,
      mode,
      uid: 0,
      gid: 0,
      size,
      mtime: 1,
      ctime: 1,
      links: 1,
    };
    nodes.set(path, tree.add(parent, path.slice(cut + 1), stat));
  }
  return tree;
}

const files = (...entries: [path: string, ino: number, size?: number][]): Files =>
  new Map(entries.map(([path, ino, size = 0]) => [`${ROOT}/${path}`, { ino, size }]));

const told = (changes: FileModified[]) =>
  changes.map(({ event_type, path, old_path }) =>
    [event_type, path, old_path].filter(Boolean).map((each) => String(each).replace(`${ROOT}/`, '')),
  );

describe('the differences of two states', () => {
  it('tell moves as moves, a moved directory once, and what has changed in it', () => {
    const before = files(
      ['a', -1],
      ['a/f', 2, 5],
      ['a/sub', -3],
      ['a/sub/g', 4],
      ['b', -5],
      ['old', 6],
      ['h', 7],
      ['gone', 8],
    );
    const after = files(
      ['b', -5],
      ['b/a', -1],
      ['b/a/f', 2, 6],
      ['b/a/top', 4],
      ['b/a/sub', -3],
      ['new', 6],
      ['h', -9],
      ['h/i', 10],
    );
    expect(told(differences(treeOf(before), treeOf(after), ROOT))).toEqual([
      ['rename', 'b/a', 'a'],
      ['rename', 'new', 'old'],
      ['rename', 'b/a/top', 'b/a/sub/g'],
      ['remove', 'h'],
      ['remove', 'gone'],
      ['create', 'h'],
      ['create', 'h/i'],
      ['write', 'b/a/f'],
    ]);
  });

  it('are those of one directory, also where it is the root of one tree and part of the other', () => {
    const whole = files(['x', 1], ['d', -2], ['d/f', 3], ['d/g', 4]);
    const part: Files = new Map([[`${ROOT}/d/f`, { ino: 3, size: 9 }]]);
    const directory = `${ROOT}/d`;
    const [large, small] = [treeOf(whole), treeOf(part, directory)];
    expect(told(differences(large, small, directory))).toEqual([
      ['remove', 'd/g'],
      ['write', 'd/f'],
    ]);
    expect(told(differences(small, large, directory))).toEqual([
      ['create', 'd/g'],
      ['write', 'd/f'],
    ]);
    expect(told(differences(large, treeOf(files(['x', 1])), directory))).toEqual([
      ['remove', 'd/f'],
      ['remove', 'd/g'],
      ['remove', 'd'],
    ]);
  });

  it('lead from any state to any other, each true when it is applied', () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => `${ROOT}/${names.join('/')}`);
    const entry = fc.record({
      path,
      ino: fc.integer({ min: 1, max: 8 }),
      is_directory: fc.boolean(),
      size: fc.nat(1),
    });
    const state = fc.array(entry, { maxLength: 14 }).map((entries) => {
      const made: Files = new Map();
      for (const { path, ino, is_directory, size } of entries) {
        const above = path.slice(0, path.lastIndexOf('/'));
        const is_placed = above === ROOT || (made.get(above)?.ino ?? 0) < 0;
        if (is_placed && !made.has(path))
          made.set(path, { ino: is_directory ? -ino : ino, size: is_directory ? 0 : size });
      }
      return made;
    });
    fc.assert(
      fc.property(state, state, (before, after) => {
        const paths = new Map(
          [...before].map(([path, { ino, size }]) => [path, { is_directory: ino < 0, size }]),
        );
        const isDirectory = (path: string) => path === ROOT || paths.get(path)?.is_directory;
        for (const { event_type, path, old_path, is_directory } of differences(
          treeOf(before),
          treeOf(after),
          ROOT,
        )) {
          const above = path.slice(0, path.lastIndexOf('/'));
          const now = after.get(path);
          if (event_type === 'create') {
            expect([paths.has(path), isDirectory(above)]).toEqual([false, true]);
            paths.set(path, { is_directory, size: now?.size ?? 0 });
          } else if (event_type === 'remove') {
            expect([...paths.keys()].filter((each) => each === path || each.startsWith(`${path}/`))).toEqual([
              path,
            ]);
            paths.delete(path);
          } else if (event_type === 'rename') {
            expect([paths.has(old_path as string), paths.has(path), isDirectory(above)]).toEqual([
              true,
              false,
              true,
            ]);
            for (const [each, known] of [...paths]) {
              if (each !== old_path && !each.startsWith(`${old_path}/`)) continue;
              paths.delete(each);
              paths.set(path + each.slice((old_path as string).length), known);
            }
          } else {
            expect(paths.get(path)?.is_directory).toBe(is_directory);
            if (event_type === 'write') paths.set(path, { is_directory, size: now?.size ?? 0 });
          }
        }
        const shown = [...after].map(([path, { ino, size }]) => [path, { is_directory: ino < 0, size }]);
        expect([...paths].sort()).toEqual(shown.sort());
      }),
      { numRuns: 1_000 },
    );
  });
});
