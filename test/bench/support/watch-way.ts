import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.ts';
import { Engine } from '../../../src/watch/engine.ts';
import { ChokidarWatches, type DirectoryWatches } from '../../../src/watch/signals/directory-watch.ts';
import { Random } from '../../support/random.ts';
import { MemoryStore } from '../../support/watch/memory-store.ts';
import { Mirror } from '../../support/watch/mirror.ts';
import { until, WatchedTree } from '../../support/watch/watched-tree.ts';
import type { Operation, Tree } from './file-changes.ts';
import { sleepMs } from './numbers.ts';
import { serve } from './program.ts';
import { PublicWatches } from './public-watches.ts';

/** By whom watches are set: as in the product, or by chokidar's public interface alone. */
export type Way = 'product' | 'public';

export type WatchWayVerbs = {
  /** Sets the watches of a tree, and nothing else; resolves when all are set. */
  watches: (tree: Tree & { way: Way }) => Promise<void>;
  /** Watches a tree; resolves when everything in it is known and watched. */
  engine: (settings: { dir: string; way: Way }) => Promise<void>;
  /** How many events of an operation the engine has reported. */
  reported: (operation: Operation) => number;
  /** Makes and removes directories in the tree that the engine watches; resolves when all of it is reported. */
  churn: (settings: { dir: string; directories: number }) => Promise<void>;
  /** One tree of its own, and random changes in it: how the reported tree differs from the disk; null if it does not. */
  round: (settings: { way: Way; seed: number; changes: number }) => Promise<string | null>;
};

const quiet = { debug: () => {}, info: () => {}, warn: () => {} };
const NAMES = ['a', 'b', 'c', 'd'];

function made(way: Way): { watches: DirectoryWatches; complete: () => Promise<void> } {
  if (way === 'product') return { watches: new ChokidarWatches(), complete: async () => {} };
  const watches = new PublicWatches();
  return { watches, complete: () => watches.complete() };
}

async function watches({ dir, directories, way }: Tree & { way: Way }): Promise<void> {
  const { watches, complete } = made(way);
  for (let i = 0; i < directories; i++) {
    if (typeof watches.watch(join(dir, `d${i}`), () => {}) === 'string') throw new Error('not watched');
  }
  await complete();
}

const store = new MemoryStore();
const counts = new Map<string, number>();
store.onCommit = ({ events }) => {
  for (const { payload } of events) {
    counts.set(payload.event_type, (counts.get(payload.event_type) ?? 0) + 1);
  }
  store.events.length = 0;
};
const reported = (operation: Operation) => counts.get(operation) ?? 0;

async function engine({ dir, way }: { dir: string; way: Way }): Promise<void> {
  const { watches, complete } = made(way);
  const settings = { watch_dir: dir, ignore: [], own_paths: [], clock: systemClock, log: quiet, store };
  const engine = new Engine({ ...settings, watches });
  await engine.start();
  await complete();
  await until(
    () => engine.status().queued === 0,
    () => engine.status(),
  );
}

async function churn({ dir, directories }: { dir: string; directories: number }): Promise<void> {
  const paths = Array.from({ length: directories }, (_, i) => join(dir, `churned-${i}`));
  const before = { create: reported('create'), remove: reported('remove') };
  for (const path of paths) mkdirSync(path);
  await until(
    () => reported('create') >= before.create + directories,
    () => [...counts],
  );
  for (const path of paths) rmSync(path, { recursive: true });
  await until(
    () => reported('remove') >= before.remove + directories,
    () => [...counts],
  );
}

async function round({
  way,
  seed,
  changes,
}: {
  way: Way;
  seed: number;
  changes: number;
}): Promise<string | null> {
  const tree = new WatchedTree({ watches: made(way).watches });
  const random = new Random(seed);
  tree.make('a/b/', 'c/d', 'd');
  await tree.start();
  const mirror = new Mirror(pathsBelow(tree.top), contentOf);
  let broken: string | null = null;
  tree.store.onCommit = ({ events }) => {
    try {
      for (const { payload } of events) mirror.apply(payload);
    } catch (error) {
      broken ??= (error as Error).message;
    }
  };
  try {
    for (let i = 0; i < changes; i++) {
      if (random.chance(0.1)) await fillNewDirectory(join(tree.top, random.pick(NAMES), `new-${i}`), random);
      else change(tree.top, random);
      await pause(random);
    }
    await tree.settled();
    await tree.settled();
    const disk = pathsBelow(tree.top).map((path) => `${path}: ${contentOf(path)}`);
    const reported = mirror.entries().map(([path, content]) => `${path}: ${content}`);
    const differing = [
      ...disk.filter((line) => !reported.includes(line)),
      ...reported.filter((line) => !disk.includes(line)),
    ];
    return broken ?? (differing.length > 0 ? differing.join(', ') : null);
  } catch (error) {
    return (error as Error).message;
  } finally {
    await tree.close();
  }
}

/** Mostly shorter than it takes to set a watch, now and then as long as it takes to report a change. */
async function pause(random: Random): Promise<void> {
  if (random.chance(0.1)) await sleepMs(random.below(60));
  else for (let turns = random.below(5); turns > 0; turns--) await nextTurn();
}

/** Its files are made while its watch is being set. */
async function fillNewDirectory(dir: string, random: Random): Promise<void> {
  try {
    mkdirSync(dir, { recursive: true });
    for (let i = 0; i < 20; i++) {
      await sleepMs(random.below(4));
      writeFileSync(join(dir, `${i}`), '');
    }
  } catch {
    // a file is in the way
  }
}

/** One random change; many are refused, such as a move of a directory into itself. */
function change(top: string, random: Random): void {
  const path = () => join(top, ...Array.from({ length: 1 + random.below(3) }, () => random.pick(NAMES)));
  const [from, to] = [path(), path()];
  try {
    const kind = random.below(8);
    if (kind < 2) mkdirSync(from, { recursive: true });
    if (kind === 2) mkdirSync(dirname(from), { recursive: true });
    if (kind === 2 || kind === 3) writeFileSync(from, String(random.below(1e6)));
    if (kind === 4) appendFileSync(from, 'more');
    if (kind === 5) chmodSync(from, random.chance(0.5) ? 0o700 : 0o755);
    if (kind === 6) renameSync(from, to);
    if (kind === 7) rmSync(from, { recursive: random.chance(0.3) });
  } catch {
    // refused
  }
}

function pathsBelow(dir: string): string[] {
  const entries = readdirSync(dir, { recursive: true, withFileTypes: true });
  return entries.map(({ parentPath, name }) => join(parentPath, name)).sort();
}

function contentOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null; // a directory, or gone
  }
}

serve<WatchWayVerbs>({ watches, engine, reported, churn, round });
