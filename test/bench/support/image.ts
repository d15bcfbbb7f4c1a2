import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runSync } from '../../support/run-sync.ts';

export const TREE = fileURLToPath(new URL('../../../dist/image/', import.meta.url));
export const NODE = join(TREE, 'usr/local/lib/sandboxd/node');
export const SANDBOXD = join(TREE, 'usr/local/bin/sandboxd');

let is_made = false;

/** Makes the tree that images hold, from the sources as they are. */
export function makeTree(): void {
  const maker = fileURLToPath(new URL('../../../.build/image/build.ts', import.meta.url));
  if (!is_made) runSync(process.execPath, maker, TREE.replace(/\/$/, ''));
  is_made = true;
}
