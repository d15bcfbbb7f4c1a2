import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { EngineOptions } from '../../src/watch/engine-options.ts';
import { until, WatchedTree } from '../support/watch/watched-tree.ts';

let tree: WatchedTree;

const watched = (options: Partial<EngineOptions> = {}) => {
  tree = new WatchedTree(options);
  return tree;
};

afterEach(() => tree.close());

describe('the last known tree', () => {
  it('is what exists at the very first start, without events', async () => {
    watched().make('a', 'd/b', 'e/');
    await tree.start();
    expect(tree.engine.status()).toMatchObject({ state: 'watching', index_size: 4, directories_watched: 3 });
    expect(tree.told()).toEqual([]);
    await tree.restart(() => {});
    expect(tree.told()).toEqual([]);
  });

  it('gives the differences of a time without the daemon, once', async () => {
    watched().make('keep', 'write', 'gone', 'old', 't/u/x');
    await tree.start();
    await tree.restart(() => {
      tree.append('write');
      unlinkSync(tree.at('gone'));
      renameSync(tree.at('old'), tree.at('new'));
      renameSync(tree.at('t'), tree.at('T'));
      tree.make('d/f');
    });
    expect(tree.told().sort()).toEqual([
      'create d',
      'create d/f',
      'remove gone',
      'rename old -> new',
      'rename t -> T',
      'write write',
    ]);
    const count = tree.told().length;
    await tree.restart(() => {});
    expect(tree.told()).toHaveLength(count);
  });

  it('gives one write for a file that was replaced meanwhile, and nothing for a copy with the same content', async () => {
    watched().make('replaced', 'same');
    await tree.start();
    await tree.restart(() => {
      writeFileSync(tree.at('.tmp'), 'other content');
      renameSync(tree.at('.tmp'), tree.at('replaced'));
    });
    expect(tree.told()).toEqual(['write replaced']);
  });

  it('is made anew where the first index was never finished', async () => {
    watched().make('a', 'b');
    await tree.start();
    await tree.engine.stop();
    tree.store.rows.delete(1);
    unlinkSync(tree.at('a'));
    await tree.start();
    expect(tree.told()).toEqual([]);
    expect(tree.store.rows.size).toBe(2);
    expect(await tree.told_since(() => tree.append('b'))).toEqual(['write b']);
  });

  it('is not taken for that of another directory', async () => {
    watched().make('a');
    await tree.start();
    await tree.engine.stop();
    const other = new WatchedTree();
    for (const [id, entry] of tree.store.rows) other.store.rows.set(id, entry);
    other.make('b');
    await other.start();
    expect(other.told()).toEqual([]);
    expect(other.engine.status().index_size).toBe(1);
    await other.close();
  });
});

describe('a watch_dir', () => {
  it('is waited for where it does not exist, and then tells what is in it', async () => {
    watched();
    await tree.start();
    expect(tree.engine.status().state).toBe('waiting');
    tree.make('s/c');
    await until(
      () => tree.told().length === 2,
      () => tree.told(),
    );
    expect(tree.told()).toEqual(['create s', 'create s/c']);
    expect(tree.engine.status().state).toBe('watching');
  });

  it('may be removed and made again', async () => {
    watched().make('a', 's/b');
    await tree.start();
    rmSync(tree.top, { recursive: true });
    await until(
      () => tree.engine.status().state === 'waiting' && tree.told().length === 3,
      () => tree.told(),
    );
    expect(tree.told().sort()).toEqual(['remove a', 'remove s', 'remove s/b']);
    tree.make('a');
    await until(
      () => tree.told().length === 4,
      () => tree.told(),
    );
    expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
  });

  it('may be replaced by another', async () => {
    watched().make('a', 's/b');
    await tree.start();
    const told = await tree.told_since(() => {
      mkdirSync(join(tree.base, 'other', 's'), { recursive: true });
      writeFileSync(join(tree.base, 'other', 'n'), '');
      renameSync(tree.top, join(tree.base, 'former'));
      renameSync(join(tree.base, 'other'), tree.top);
    });
    expect(told.sort()).toEqual(['create n', 'create s', 'remove a', 'remove s', 'remove s/b']);
    expect(await tree.told_since(() => writeFileSync(tree.at('s/x'), ''))).toEqual(['create s/x']);
    expect(await tree.told_since(() => writeFileSync(join(tree.base, 'former', 'x'), ''))).toEqual([]);
  });

  it('may be a symbolic link, told by its own name', async () => {
    watched();
    mkdirSync(join(tree.base, 'real'));
    symlinkSync('real', tree.top);
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(join(tree.base, 'real', 'a'), ''))).toEqual([
      'create a',
    ]);
  });
});

describe('what is left out', () => {
  it('is nothing unless asked', async () => {
    watched().make('.git/', 'node_modules/');
    await tree.start();
    expect(await tree.told_since(() => tree.make('.git/a', 'node_modules/b'))).toHaveLength(4);
  });

  it('is a name at any depth, or a path from the top, with all below it', async () => {
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

  it('takes a file renamed into it as removed, and one out of it as created', async () => {
    watched({ ignore: ['*.tmp'] }).make('a', 'b.tmp');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('a'), tree.at('a.tmp')))).toEqual(['remove a']);
    expect(await tree.told_since(() => renameSync(tree.at('b.tmp'), tree.at('b')))).toEqual(['create b']);
  });

  it('is not told as removed when it is ignored from now on', async () => {
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

  it('is the daemon’s own', async () => {
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

describe('an outbox that takes nothing', () => {
  it('has changes coalesced per path until there is room', async () => {
    watched().make('a', 'b');
    await tree.start();
    tree.store.answer = 'full';
    for (let i = 0; i < 3; i++) {
      const commits = tree.store.commits;
      tree.append('a');
      tree.make(`new/${i}`);
      await until(
        () => tree.store.commits > commits,
        () => tree.engine.status(),
      );
    }
    unlinkSync(tree.at('b'));
    expect(tree.told()).toEqual([]);
    tree.store.answer = 'committed';
    const told = await tree.settled();
    expect(told.filter((event) => !event.startsWith('write new')).sort()).toEqual([
      'create new',
      'create new/0',
      'create new/1',
      'create new/2',
      'remove b',
      'write a',
    ]);
  });

  it('does not hold up the start, and the first index follows', async () => {
    watched().make('a', 'd/b');
    tree.store.answer = 'unavailable';
    await tree.start();
    expect(tree.engine.status().state).toBe('starting');
    tree.store.answer = 'committed';
    await until(
      () => tree.engine.status().state === 'watching',
      () => tree.engine.status(),
    );
    expect(tree.told()).toEqual([]);
    expect(await tree.told_since(() => tree.append('d/b'))).toEqual(['write d/b']);
  });
});

describe('many changes', () => {
  it('are committed in bounded parts', async () => {
    watched().make('./');
    await tree.start();
    await tree.told_since(() => {
      for (let i = 0; i < 3_000; i++) tree.make(`d${i % 7}/f${i}`);
    });
    expect(tree.told().filter((event) => event.startsWith('create'))).toHaveLength(3_007);
    await tree.told_since(() => {
      for (const name of readdirSync(tree.top)) {
        if (name.startsWith('d')) renameSync(tree.at(name), join(tree.base, name));
      }
    });
    expect(tree.told().filter((event) => event.startsWith('remove'))).toHaveLength(3_007);
    expect(tree.store.largest_commit).toBeLessThanOrEqual(1_000);
  }, 30_000);

  it('leave the outbox to others between two commits', async () => {
    watched().make('./');
    await tree.start();
    const commit = tree.store.commit.bind(tree.store);
    const gaps_ms: number[] = [];
    let last_end_ms = Number.NaN;
    tree.store.commit = async (batch) => {
      gaps_ms.push(performance.now() - last_end_ms);
      await new Promise((resolve) => setTimeout(resolve, 20));
      last_end_ms = batch.events.length >= 25 ? performance.now() : Number.NaN;
      return commit(batch);
    };
    await tree.told_since(() => {
      for (let i = 0; i < 500; i++) tree.make(`f${i}`);
    });
    const after_crowded = gaps_ms.filter((gap_ms) => !Number.isNaN(gap_ms));
    expect(after_crowded.length).toBeGreaterThanOrEqual(4);
    expect(Math.min(...after_crowded)).toBeGreaterThanOrEqual(1.5);
  });

  it('in many new directories that go at once are told to the end', async () => {
    watched().make('./');
    await tree.start();
    await tree.told_since(() => {
      for (let i = 0; i < 4_000; i++) tree.make(`t/p${i % 20}/q${i % 400}/f${i}`);
    });
    await tree.told_since(() => rmSync(tree.at('t'), { recursive: true }));
    expect(tree.told().filter((event) => event.startsWith('remove'))).toHaveLength(4_421);
    expect(tree.engine.status()).toMatchObject({ queued: 0, directories_watched: 1 });
  }, 30_000);

  it('have the tree compared when the kernel may have dropped some', async () => {
    watched({ queue_length: 40 }).make('./');
    await tree.start();
    for (let i = 0; i < 50; i++) tree.make(`f${i}`);
    await until(
      () => tree.engine.status().reconciles.overflow === 1,
      () => tree.engine.status(),
    );
  });
});
