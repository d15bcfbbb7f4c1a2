/**
 * swapper.ts SETTINGS: an attacker in a sandbox, as the account nobody. Swaps files, directories, pipes and links under
 * names that file operations are using, as fast as it can, and reads whatever lies in its home meanwhile. Ends with its
 * stdin, and then prints what it did as JSON.
 */
import {
  closeSync,
  constants,
  linkSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';

/** What an attacker is told. */
export interface SwapperSettings {
  home: string;
  uid: number;
  /** Each attacker has its own numbers for the names that it needs. */
  id: number;
  /** Where links lead. */
  targets: string[];
  /** What it is not to read anywhere. */
  canaries: string[];
}

/** What an attacker did: changes of names, and canaries that it could read. */
export interface SwapperReport {
  flips: number;
  exchanges: number;
  seen: string[];
}

const AT_FDCWD = -100;
const RENAME_EXCHANGE = 2;
const BYTES_MAX = 4_096;

const { home, uid, id, targets, canaries } = JSON.parse(process.argv[2] ?? '') as SwapperSettings;
const renameat2 = koffi
  .load('libc.so.6')
  .func('int renameat2(int, const char *, int, const char *, uint32_t)');
const report: SwapperReport = { flips: 0, exchanges: 0, seen: [] };
const buffer = Buffer.alloc(BYTES_MAX);
process.setgid?.(uid);
process.setuid?.(uid);

/** Whatever fails now may succeed the next time: the others are at it too. */
function attempt(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

/** Puts a link in the place of whatever is no directory. */
function flip(name: string, target: string): void {
  const next = join(home, `flip-${id}`);
  attempt(() => unlinkSync(next));
  if (attempt(() => symlinkSync(target, next)) && attempt(() => renameSync(next, join(home, name))))
    report.flips += 1;
}

/** Has two names change places in one step, whatever they are. */
function exchange(one: string, other: string): void {
  if (renameat2(AT_FDCWD, join(home, one), AT_FDCWD, join(home, other), RENAME_EXCHANGE) === 0)
    report.exchanges += 1;
}

/** Reads the beginning of a file; a pipe does not hold it up. */
function read(path: string): void {
  attempt(() => {
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const text = buffer.toString('latin1', 0, readSync(fd, buffer));
      for (const canary of canaries) if (text.includes(canary)) report.seen.push(path);
    } finally {
      closeSync(fd);
    }
  });
}

/** Reads, and keeps by another name, what is being made for others. */
function spy(): void {
  for (const folder of [home, join(home, 'd'), join(home, 'out')]) {
    attempt(() => {
      for (const name of readdirSync(folder)) {
        read(join(folder, name));
        if (name.startsWith('.sandboxd-'))
          attempt(() => linkSync(join(folder, name), join(home, `kept-${id}`)));
      }
    });
  }
}

let turn = 0;
function attack(): void {
  turn += 1;
  const target = targets[turn % targets.length] as string;
  if (id % 2 === 0) flip('x', target);
  else {
    exchange('d', ['l', 'e'][turn % 2] as string);
    exchange('d/f', ['pipe', 'to-file'][turn % 2] as string);
    exchange('out', 'l');
  }
  if (turn % 16 === 0) flip('to-file', join(target, 'control-token'));
  if (turn % 64 === 0) {
    attempt(() => unlinkSync(join(home, `kept-${id}`)));
    spy();
  }
}

process.stdout.write('ready\n');
const timer = setInterval(attack, 1);
process.stdin.resume().once('end', () => {
  clearInterval(timer);
  process.stdout.write(`${JSON.stringify(report)}\n`);
});
