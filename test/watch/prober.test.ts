import { beforeEach, describe, expect, it } from 'vitest';
import { emptyTree } from '../../src/watch/index/stored-tree.ts';
import type { Tree } from '../../src/watch/index/tree.ts';
import type { TreeNode } from '../../src/watch/index/tree-node.ts';
import type { Observation } from '../../src/watch/observation.ts';
import { Prober } from '../../src/watch/prober.ts';
import { RemoteMounts } from '../../src/watch/remote-mounts.ts';
import { RootGate } from '../../src/watch/root-gate.ts';
import { PendingNames } from '../../src/watch/signals/pending-names.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ScriptedDisk } from '../support/watch/scripted-disk.ts';

const DIRECTORY = 0o040755;
const FILE = 0o100644;

let disk: ScriptedDisk;
let tree: Tree;
let pending: PendingNames;
let prober: Prober;

beforeEach(() => {
  const clock = new ManualClock();
  const log = { warn: () => {} };
  disk = new ScriptedDisk();
  tree = emptyTree('/w');
  pending = new PendingNames(clock);
  const gate = new RootGate({ watch_dir: '/w', own_paths: [], disk, log });
  prober = new Prober(tree, pending, clock, disk, gate, new RemoteMounts({ tree, clock, disk, log }));
  disk.put('/w', DIRECTORY);
  tree.update(tree.root, prober.probeRoot().stat as NonNullable<ReturnType<Prober['probeRoot']>['stat']>);
});

/** Puts something on the disk that the tree knows. */
function known(dir: TreeNode, name: string, mode = FILE): TreeNode {
  disk.put(tree.childPath(dir, name), mode);
  const stat = prober.probe(dir, name);
  if (typeof stat === 'string') throw new Error(stat);
  return tree.add(dir, name, stat);
}

function observe(dir: TreeNode, ...names: string[]) {
  for (const name of names) pending.add(dir, name);
  return prober.observe(pending.take(100), []);
}

const namesOf = (observations: Observation[]) => observations.map(({ name }) => name);

describe('the watched directory', () => {
  it('is there, replaced by another one, missing or hidden', () => {
    expect(prober.probeRoot().state).toBe('there');
    disk.put('/w', DIRECTORY);
    expect(prober.probeRoot().state).toBe('replaced');
    disk.put('/w', FILE);
    expect(prober.probeRoot()).toEqual({ state: 'missing', stat: null });
    disk.entries.set('/w', 'hidden');
    expect(prober.probeRoot()).toEqual({ state: 'hidden', stat: null });
  });

  it('has the device number 0, and so has everything on its file system', () => {
    known(tree.root, 'a');
    disk.put('/w/mounted', DIRECTORY, { dev: 7 });
    expect(prober.probe(tree.root, 'a')).toMatchObject({ dev: 0 });
    expect(prober.probe(tree.root, 'mounted')).toMatchObject({ dev: 7 });
  });
});

describe('a name', () => {
  it('is observed where its directory is at its place', () => {
    const dir = known(tree.root, 'd', DIRECTORY);
    disk.put('/w/d/new', FILE, { size: 5 });
    const { observations, displaced, postponed, raced } = observe(dir, 'new', 'gone');
    expect(observations.map(({ name, stat }) => [name, stat?.size])).toEqual([
      ['new', 5],
      ['gone', undefined],
    ]);
    expect([displaced.size, postponed.length, raced.length]).toEqual([0, 0, 0]);
  });

  it('waits where its directory has moved, and the place of that is observed instead', () => {
    const dir = known(tree.root, 'd', DIRECTORY);
    const below = known(dir, 'e', DIRECTORY);
    disk.entries.delete('/w/d');
    const { observations, displaced, postponed } = observe(below, 'f');
    expect([namesOf(postponed), namesOf(observations)]).toEqual([['f'], ['d']]);
    expect([...displaced]).toEqual([dir]);
  });

  it('is not observed where its directory cannot be seen', () => {
    const dir = known(tree.root, 'd', DIRECTORY);
    disk.entries.set('/w/d', 'hidden');
    const { observations, postponed, raced } = observe(dir, 'f');
    expect([observations, postponed, raced]).toEqual([[], [], []]);
  });

  it('is observed again where its directory moved meanwhile', () => {
    const dir = known(tree.root, 'd', DIRECTORY);
    disk.put('/w/d/f', FILE);
    disk.onProbe = (path) => {
      if (path === '/w/d/f') disk.put('/w/d', DIRECTORY);
    };
    const { observations, raced } = observe(dir, 'f');
    expect([namesOf(observations), namesOf(raced)]).toEqual([[], ['f']]);
  });

  it('under which a known file is found has the former place of that file observed, too', () => {
    const node = known(tree.root, 'old');
    disk.entries.set('/w/new', disk.entries.get('/w/old') as never);
    disk.entries.delete('/w/old');
    const { observations, displaced } = observe(tree.root, 'new');
    expect(namesOf(observations)).toEqual(['new', 'old']);
    expect([...displaced]).toEqual([node]);
  });
});

describe('one round of looks', () => {
  it('looks at each directory on the way once before the names and once after them', () => {
    const dir = known(tree.root, 'd', DIRECTORY);
    for (const name of ['a', 'b', 'c']) disk.put(`/w/d/${name}`, FILE);
    const looks: string[] = [];
    disk.onProbe = (path) => void looks.push(path);
    observe(dir, 'a', 'b', 'c');
    expect(looks.filter((path) => path === '/w/d')).toHaveLength(2);
    expect(looks.filter((path) => path.startsWith('/w/d/'))).toEqual(['/w/d/a', '/w/d/b', '/w/d/c']);
  });
});
