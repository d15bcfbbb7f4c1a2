import {
  appendFileSync,
  chmodSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));

describe('the five operations', () => {
  it('tells a new file and its content', async () => {
    tree.make('./');
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(tree.at('a'), 'x'))).toEqual(['create a', 'write a']);
  });

  it('tells an empty file as created only', async () => {
    tree.make('./');
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(tree.at('a'), ''))).toEqual(['create a']);
  });

  it('tells a write, a chmod and a remove of a known file', async () => {
    tree.make('a');
    await tree.start();
    expect(await tree.told_since(() => tree.append('a'))).toEqual(['write a']);
    expect(await tree.told_since(() => chmodSync(tree.at('a'), 0o600))).toEqual(['chmod a']);
    expect(await tree.told_since(() => unlinkSync(tree.at('a')))).toEqual(['remove a']);
  });

  it('says of each event whether it is about a directory, with absolute paths', async () => {
    tree.make('d/', 'f');
    await tree.start();
    await tree.told_since(() => renameSync(tree.at('d'), tree.at('e')));
    await tree.told_since(() => tree.append('f'));
    expect(tree.payloads()).toEqual([
      { event_type: 'rename', path: tree.at('e'), old_path: tree.at('d'), is_directory: true },
      { event_type: 'write', path: tree.at('f'), is_directory: false },
    ]);
  });

  it('tells a move within the tree as one rename', async () => {
    tree.make('a', 'p/', 'q/');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('a'), tree.at('p/b')))).toEqual([
      'rename a -> p/b',
    ]);
    expect(await tree.told_since(() => renameSync(tree.at('p/b'), tree.at('q/b')))).toEqual([
      'rename p/b -> q/b',
    ]);
  });

  it('tells a moved directory as one event and goes on inside it', async () => {
    tree.make('t/a', 't/u/b');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('t'), tree.at('T')))).toEqual(['rename t -> T']);
    expect(await tree.told_since(() => tree.append('T/u/b'))).toEqual(['write T/u/b']);
    expect(await tree.told_since(() => writeFileSync(tree.at('T/u/n'), ''))).toEqual(['create T/u/n']);
  });

  it('tells a moved tree of 5 000 files as one event', async () => {
    for (let i = 0; i < 5_000; i++) tree.make(`t/${i % 50}/${i}`);
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('t'), tree.at('moved')))).toEqual([
      'rename t -> moved',
    ]);
    expect(await tree.told_since(() => tree.append('moved/7/7'))).toEqual(['write moved/7/7']);
  }, 30_000);

  it('does not take a for ab when a is renamed', async () => {
    tree.make('a/f', 'ab/f');
    await tree.start();
    expect(await tree.told_since(() => renameSync(tree.at('a'), tree.at('c')))).toEqual(['rename a -> c']);
    expect(await tree.told_since(() => tree.append('ab/f'))).toEqual(['write ab/f']);
  });

  it('tells an atomic save as one rename onto the saved file', async () => {
    tree.make('f');
    await tree.start();
    const told = await tree.told_since(() => {
      writeFileSync(tree.at('.f.tmp'), 'new');
      renameSync(tree.at('.f.tmp'), tree.at('f'));
    });
    expect(told).toEqual(['create .f.tmp', 'write .f.tmp', 'rename .f.tmp -> f']);
  });

  it('tells a burst of writes to one file once, and the last content', async () => {
    tree.make('a');
    await tree.start();
    let told_at = 0;
    tree.store.onCommit = () => {
      told_at = Date.now();
    };
    let last_at = 0;
    const told = await tree.told_since(async () => {
      for (let i = 0; i < 5; i++) {
        tree.append('a');
        last_at = Date.now();
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    expect(told).toEqual(['write a']);
    expect(told_at).toBeGreaterThanOrEqual(last_at);
  });

  it('tells a file that came and went', async () => {
    tree.make('./');
    await tree.start();
    const told = await tree.told_since(() => {
      writeFileSync(tree.at('a'), '');
      unlinkSync(tree.at('a'));
    });
    expect(told).toEqual(['create a', 'remove a']);
  });

  it('tells two files that changed places so that whoever follows has both', async () => {
    tree.make('a', 'b');
    await tree.start();
    const told = await tree.told_since(() => {
      renameSync(tree.at('a'), tree.at('t'));
      renameSync(tree.at('b'), tree.at('a'));
      renameSync(tree.at('t'), tree.at('b'));
    });
    expect(told).toEqual(['rename a -> t', 'rename b -> a', 'rename t -> b']);
  });
});

describe('directories', () => {
  it('finds what was made in new directories before they were watched', async () => {
    tree.make('./');
    await tree.start();
    const told = await tree.told_since(() => {
      mkdirSync(tree.at('a/b/c'), { recursive: true });
      writeFileSync(tree.at('a/b/c/f'), '');
      writeFileSync(tree.at('a/g'), '');
    });
    expect([...told].sort()).toEqual([
      'create a',
      'create a/b',
      'create a/b/c',
      'create a/b/c/f',
      'create a/g',
    ]);
  });

  it('tells everything in a removed directory, children first', async () => {
    tree.make('t/u/b');
    await tree.start();
    expect(await tree.told_since(() => rmSync(tree.at('t'), { recursive: true }))).toEqual([
      'remove t/u/b',
      'remove t/u',
      'remove t',
    ]);
  });

  it('tells a tree moved out as removed and nothing of it afterwards', async () => {
    tree.make('t/b');
    await tree.start();
    const outside = join(tree.base, 'out');
    expect(await tree.told_since(() => renameSync(tree.at('t'), outside))).toEqual([
      'remove t/b',
      'remove t',
    ]);
    expect(await tree.told_since(() => writeFileSync(join(outside, 'n'), ''))).toEqual([]);
  });

  it('tells a tree moved in as created with all in it', async () => {
    tree.make('./');
    await tree.start();
    const outside = join(tree.base, 'in');
    mkdirSync(join(outside, 'u'), { recursive: true });
    writeFileSync(join(outside, 'u', 'b'), 'x');
    expect(await tree.told_since(() => renameSync(outside, tree.at('in')))).toEqual([
      'create in',
      'create in/u',
      'create in/u/b',
    ]);
    expect(await tree.told_since(() => tree.append('in/u/b'))).toEqual(['write in/u/b']);
  });

  it('watches a directory made anew under the same name', async () => {
    tree.make('s/a');
    await tree.start();
    const told = await tree.told_since(() => {
      rmSync(tree.at('s'), { recursive: true });
      mkdirSync(tree.at('s'));
      writeFileSync(tree.at('s/b'), '');
    });
    expect(told).toEqual(['remove s/a', 'remove s', 'create s', 'create s/b']);
    expect(await tree.told_since(() => tree.append('s/b'))).toEqual(['write s/b']);
  });

  it('takes one watch per directory and gives it back', async () => {
    tree.make('a/b/', 'c/', 'f');
    await tree.start();
    expect(tree.engine.status().directories_watched).toBe(4);
    await tree.told_since(() => rmSync(tree.at('a'), { recursive: true }));
    expect(tree.engine.status().directories_watched).toBe(2);
  });
});

describe('links and names', () => {
  it('does not follow symbolic links', async () => {
    tree.make('./');
    await tree.start();
    mkdirSync(join(tree.base, 'outside'));
    expect(await tree.told_since(() => symlinkSync(join(tree.base, 'outside'), tree.at('l')))).toEqual([
      'create l',
    ]);
    expect(await tree.told_since(() => writeFileSync(join(tree.base, 'outside', 'f'), ''))).toEqual([]);
    expect(await tree.told_since(() => symlinkSync('.', tree.at('loop')))).toEqual(['create loop']);
  });

  it('tells a write for every known name of a hard-linked file', async () => {
    tree.make('a');
    await tree.start();
    expect(await tree.told_since(() => linkSync(tree.at('a'), tree.at('b')))).toEqual(['create b']);
    expect((await tree.told_since(() => tree.append('b'))).sort()).toEqual(['write a', 'write b']);
    expect(await tree.told_since(() => unlinkSync(tree.at('a')))).toEqual(['remove a']);
  });

  it('tells names that are not UTF-8 with their bytes, at every depth', async () => {
    tree.make('./');
    await tree.start();
    const dir = bytes(`${tree.top}/`, [0x62, 0xff]);
    await tree.told_since(() => mkdirSync(dir));
    await tree.told_since(() => writeFileSync(bytes(`${tree.top}/`, [0x62, 0xff], '/\u00e9', [0xfe]), ''));
    expect(tree.payloads()).toMatchObject([
      { event_type: 'create', path: tree.at('b\ufffd'), path_base64: dir.toString('base64') },
      {
        event_type: 'create',
        path: tree.at('b\ufffd/\u00e9\ufffd'),
        path_base64: bytes(`${tree.top}/`, [0x62, 0xff], '/\u00e9', [0xfe]).toString('base64'),
      },
    ]);
    await tree.told_since(() => renameSync(dir, tree.at('plain')));
    expect(tree.payloads().at(-1)).toEqual({
      event_type: 'rename',
      path: tree.at('plain'),
      old_path: tree.at('b\ufffd'),
      old_path_base64: dir.toString('base64'),
      is_directory: true,
    });
  });

  it.each(['new\nline', 'back\\slash', '*glob?[x]', '\ufffd', 'x~', '..a', '-', 'L'.repeat(255)])(
    'watches a directory called %j',
    async (name) => {
      tree.make(`${name}/f`);
      await tree.start();
      expect(await tree.told_since(() => appendFileSync(tree.at(`${name}/f`), 'x'))).toEqual([
        `write ${name}/f`,
      ]);
      expect(await tree.told_since(() => writeFileSync(tree.at(`${name}/n`), ''))).toEqual([
        `create ${name}/n`,
      ]);
    },
  );

  it('tells a child that is called like its directory', async () => {
    tree.make('a/z');
    await tree.start();
    expect(await tree.told_since(() => writeFileSync(tree.at('a/a'), 'x'))).toEqual([
      'create a/a',
      'write a/a',
    ]);
    expect(await tree.told_since(() => unlinkSync(tree.at('a/a')))).toEqual(['remove a/a']);
  });
});
