import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nowMs } from './numbers.ts';
import { serve } from './program.ts';

/** In the order in which they are made of one file. */
export const OPERATIONS = ['create', 'write', 'chmod', 'rename', 'remove'] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface Tree {
  dir: string;
  directories: number;
  files_per_directory: number;
}

export interface Changes {
  dir: string;
  /** Those of the tree, over which the files are spread. */
  directories: number;
  /** Each operation is done to so many files of its own, which are there since the operation before. */
  files: number;
  operation: Operation;
  /** One every so often; without it as fast as it goes. */
  interval_ms?: number;
}

/** One change: `operation path` as its event tells it, and when its system call was made. */
export type Made = [key: string, at_ms: number];

export type FileChangesVerbs = {
  tree: (tree: Tree) => void;
  change: (changes: Changes) => Promise<Made[]>;
};

function tree({ dir, directories, files_per_directory }: Tree): void {
  for (let i = 0; i < directories; i++) {
    mkdirSync(join(dir, `d${i}`), { recursive: true });
    for (let k = 0; k < files_per_directory; k++) writeFileSync(join(dir, `d${i}`, `f${k}`), 'content');
  }
}

const CHANGE: Record<Operation, (path: string, renamed: string) => void> = {
  create: (path) => closeSync(openSync(path, 'wx')),
  write: (path) => appendFileSync(path, 'more'),
  chmod: (path) => chmodSync(path, 0o600),
  rename: (path, renamed) => renameSync(path, renamed),
  remove: (_path, renamed) => unlinkSync(renamed),
};

async function change({ dir, directories, files, operation, interval_ms }: Changes): Promise<Made[]> {
  const made: Made[] = [];
  const began_ms = nowMs();
  for (let i = 0; i < files; i++) {
    const path = join(dir, `d${i % directories}`, `new-${i}`);
    const renamed = join(dir, `d${i % directories}`, `renamed-${i}`);
    const at_ms = nowMs();
    CHANGE[operation](path, renamed);
    const told = operation === 'rename' || operation === 'remove' ? renamed : path;
    made.push([`${operation} ${told}`, at_ms]);
    if (interval_ms) await sleep(Math.max(0, began_ms + (i + 1) * interval_ms - nowMs()));
  }
  return made;
}

serve<FileChangesVerbs>({ tree, change });
