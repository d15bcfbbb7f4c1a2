import { existsSync } from 'node:fs';
import { CAN_LOOK_INSIDE, IS_ROOT } from '../../support/rights.ts';
import { missingPrograms, succeeds } from '../../support/run-sync.ts';
import { hasController } from './resource-group.ts';

const FAKETIME_LIBRARIES = [
  '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1',
  '/usr/lib/faketime/libfaketime.so.1',
];

/** What a fault needs beside Node. Programs are named as they are called. */
export type Need =
  | 'root'
  | 'a look into daemons'
  | 'memory control group'
  | 'pids control group'
  | 'loop device'
  | 'network namespace'
  | 'libfaketime'
  | 'cc'
  | 'fsfreeze'
  | 'nft'
  | 'openssl'
  | 'prlimit'
  | 'redis-server'
  | 'setpriv'
  | 'strace'
  | 'tc'
  | 'tini'
  | 'unshare'
  | 'xfs_io';

const known = new Map<Need, boolean>();

/** Names what is missing of `needs`, or null where all is there. */
export function missing(needs: Need[]): string | null {
  const absent = needs.filter((need) => !has(need));
  return absent.length > 0 ? absent.join(', ') : null;
}

/** The library that gives a program another clock. */
export function faketimeLibrary(): string {
  return FAKETIME_LIBRARIES.find((path) => existsSync(path)) ?? '';
}

function has(need: Need): boolean {
  const before = known.get(need);
  if (before !== undefined) return before;
  const is_there = probe(need);
  known.set(need, is_there);
  return is_there;
}

function probe(need: Need): boolean {
  switch (need) {
    case 'root':
      return IS_ROOT;
    case 'a look into daemons':
      return CAN_LOOK_INSIDE;
    case 'memory control group':
      return hasController('memory');
    case 'pids control group':
      return hasController('pids');
    case 'libfaketime':
      return faketimeLibrary() !== '';
    case 'loop device':
      return succeeds('losetup', '-f') && missingPrograms(['mkfs.ext4']).length === 0;
    case 'network namespace':
      return succeeds('unshare', '-n', '-m', 'ip', 'link', 'set', 'lo', 'up');
    case 'strace':
      // Where tracing is forbidden the program alone is no use.
      return CAN_LOOK_INSIDE && succeeds('strace', '-qq', '-o', '/dev/null', 'true');
    default:
      return missingPrograms([need]).length === 0;
  }
}
