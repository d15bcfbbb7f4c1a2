import fs from 'node:fs';
import fsPromises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';

const AT_ONCE = [
  ...[
    'openSync',
    'closeSync',
    'fstatSync',
    'lstatSync',
    'statSync',
    'readlinkSync',
    'readdirSync',
    'readFileSync',
  ],
  ...[
    'mkdirSync',
    'symlinkSync',
    'linkSync',
    'renameSync',
    'unlinkSync',
    'chmodSync',
    'fchmodSync',
    'futimesSync',
  ],
  ...['ftruncateSync', 'writeSync', 'readSync'],
];
const BY_POOL = [
  'open',
  'stat',
  'lstat',
  'readlink',
  'readdir',
  'opendir',
  'mkdir',
  'rmdir',
  'unlink',
  'symlink',
];

/** Calls of the file system by Node's functions, and bytes that were written at once. */
export interface CountedCalls {
  calls: number;
  written_bytes: number;
}

/** Counts the calls of this thread until the end of the present test. */
export function countCalls(): CountedCalls {
  const counted: CountedCalls = { calls: 0, written_bytes: 0 };
  const restore = [wrap(fs, AT_ONCE, counted), wrap(fsPromises, BY_POOL, counted)];
  syncBuiltinESMExports();
  onTestFinished(() => {
    for (const each of restore) each();
    syncBuiltinESMExports();
  });
  return counted;
}

type Functions = Record<string, (...given: unknown[]) => unknown>;

function wrap(given: object, names: readonly string[], counted: CountedCalls): () => void {
  const module = given as Functions;
  const before = names.map((name) => [name, module[name] as Functions[string]] as const);
  for (const [name, call] of before) {
    module[name] = (...values) => {
      counted.calls += 1;
      const result = call(...values);
      if (name === 'writeSync') counted.written_bytes += result as number;
      return result;
    };
  }
  return () => Object.assign(module, Object.fromEntries(before));
}
