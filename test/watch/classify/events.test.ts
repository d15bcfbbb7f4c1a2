import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WatchedTree } from '../../support/watch/watched-tree.ts';

let tree: WatchedTree;

beforeEach(() => {
  tree = new WatchedTree();
});

afterEach(() => tree.close());

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part))));

describe('an event', () => {
  it('has absolute paths and says whether it is about a directory', async () => {
    tree.make('d/', 'f');
    await tree.start();
    await tree.told_since(() => renameSync(tree.at('d'), tree.at('e')));
    await tree.told_since(() => tree.append('f'));
    expect(tree.payloads()).toEqual([
      { event_type: 'rename', path: tree.at('e'), old_path: tree.at('d'), is_directory: true },
      { event_type: 'write', path: tree.at('f'), is_directory: false },
    ]);
  });

  it('has the bytes of names that are not UTF-8, at every depth', async () => {
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
});
