import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { MountOrder, ServedFile } from './hung-mount-program.ts';
import { CAN_MOUNT } from './rights.ts';
import { scratchFolder } from './scratch.ts';

/** Whether this machine allows a file system that hangs: root, /dev/fuse, and the right to mount. */
export const CAN_HANG = canHang();

/** Behind the name of a test that is skipped where there is none. */
export const unlessHangs = CAN_HANG ? '' : ' (skipped: no file system can be mounted here)';

/**
 * A mounted file system whose server reads requests and does not answer: a thread that has asked it waits and cannot be
 * killed, as with a network file system whose server is away.
 */
export interface HungMount {
  path: string;
  /** From now on nothing is answered. */
  hang(): Promise<void>;
  /** Answers what waits, and everything from now on. */
  answer(): Promise<void>;
  /** How many requests wait. */
  waiting(): Promise<number>;
  /** Ends the server: what waits fails, and so does everything from now on. Done at the end of the test as well. */
  release(): Promise<void>;
}

/**
 * Mounts a file system with these files; a mode of 0 makes a directory. It answers until `hang`. The server is a process
 * of its own, so that the test's never waits for itself.
 */
export async function hungMount(files: Record<string, ServedFile> = {}): Promise<HungMount> {
  const path = scratchFolder();
  const server = fork(join(import.meta.dirname, 'hung-mount-program.ts'), [path, JSON.stringify(files)]);
  const ended = once(server, 'exit');
  const release = async () => {
    server.kill('SIGKILL');
    await ended;
    spawnSync('umount', ['-l', path]);
  };
  onTestFinished(release);
  const [first] = await Promise.race([once(server, 'message'), ended.then(() => [null])]);
  if (first !== 0) throw new Error('the file system is not mounted');
  const waiting = () => told(server, 'count');
  return {
    path,
    hang: async () => void (await told(server, 'hang')),
    answer: async () => void (await told(server, 'answer')),
    waiting,
    release,
  };
}

async function told(server: ChildProcess, order: MountOrder): Promise<number> {
  const answered = once(server, 'message');
  server.send(order);
  return (await answered)[0];
}

function canHang(): boolean {
  try {
    accessSync('/dev/fuse', constants.R_OK | constants.W_OK);
    return CAN_MOUNT;
  } catch {
    return false;
  }
}
