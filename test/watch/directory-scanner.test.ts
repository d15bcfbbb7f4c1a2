import { renameSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineOptions } from '../../src/watch/engine.ts';
import { until, WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;

const watched = (options: Partial<EngineOptions> = {}) => {
  tree = new WatchedTree(options);
  return tree;
};

afterEach(() => tree.close());

describe('an ignored name', () => {
  it('is one that was asked for: nothing is ignored by default', async () => {
    watched().make('.git/', 'node_modules/');
    await tree.start();
    expect(await tree.told_since(() => tree.make('.git/a', 'node_modules/b'))).toHaveLength(4);
  });

  it('is ignored at any depth, and an ignored path from the top, with everything below it', async () => {
    watched({ ignore: ['node_modules', '/dist', 'logs/*.log', '*.tmp'] }).make(
      'node_modules/x',
      'dist/x',
      'a/',
    );
    await tree.start();
    expect(tree.engine.status().directories_watched).toBe(2);
    const told = await tree.told_since(() => {
      tree.make(
        'node_modules/y',
        'a/node_modules/z',
        'dist/y',
        'a/dist/f',
        'logs/a.log',
        'logs/b',
        'a/.b.tmp',
      );
    });
    expect(told.filter((event) => event.startsWith('create')).sort()).toEqual([
      'create a/dist',
      'create a/dist/f',
      'create logs',
      'create logs/b',
    ]);
  });

  it('makes a file that is renamed to it removed, and one that is renamed from it created', async () => {
    watched({ ignore: ['*.tmp'] }).make('a', 'b.tmp');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('a'), tree.at('a.tmp')))).toEqual(['remove a']);
    expect(await tree.told_since(() => renameSync(tree.at('b.tmp'), tree.at('b')))).toEqual(['create b']);
  });

  it('is not reported as removed when it becomes ignored', async () => {
    watched().make('d/x', 'f');
    await tree.start();
    await tree.engine.stop();
    const ignoring = new WatchedTree({ ignore: ['d'], watch_dir: tree.top });
    for (const [id, entry] of tree.store.rows) ignoring.store.rows.set(id, entry);
    await ignoring.start();
    expect(ignoring.payloads()).toEqual([]);
    expect(ignoring.engine.status().index_size).toBe(1);
    await ignoring.close();
  });

  it("is any of the daemon's own files", async () => {
    watched();
    tree.make('state/x', 'f');
    await tree.close();
    watched();
    const own = new WatchedTree({ own_paths: [] });
    own.make('state/outbox.db', 'f');
    const engine = new WatchedTree({ watch_dir: own.top, own_paths: [own.at('state')] });
    await engine.start();
    writeFileSync(own.at('state/outbox.db-wal'), 'x');
    writeFileSync(own.at('g'), '');
    await until(
      () => engine.payloads().length > 0,
      () => engine.payloads(),
    );
    expect(engine.payloads().map(({ path }) => path)).toEqual([own.at('g')]);
    expect(engine.engine.status().directories_watched).toBe(1);
    await engine.close();
    await own.close();
  });
});
