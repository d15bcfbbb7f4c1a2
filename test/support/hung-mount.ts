import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { execaNode } from 'execa';
import { onTestFinished } from 'vitest';
import type { MountOrder, ServedFile } from './hung-mount-program.ts';
import { CAN_MOUNT } from './rights.ts';
import { succeeds } from './run-sync.ts';
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
  const program = join(import.meta.dirname, 'hung-mount-program.ts');
  const server = execaNode(program, [path, JSON.stringify(files)], {
    stdio: 'inherit',
    buffer: false,
    reject: false,
  });
  const release = async () => {
    server.kill('SIGKILL');
    await server;
    succeeds('umount', '-l', path);
  };
  onTestFinished(release);
  await server.getOneMessage(); // it is mounted
  const told = async (order: MountOrder) => {
    const [waiting] = await Promise.all([server.getOneMessage(), server.sendMessage(order)]);
    return waiting as number;
  };
  return {
    path,
    hang: async () => void (await told('hang')),
    answer: async () => void (await told('answer')),
    waiting: () => told('count'),
    release,
  };
}

function canHang(): boolean {
  try {
    accessSync('/dev/fuse', constants.R_OK | constants.W_OK);
    return CAN_MOUNT;
  } catch {
    return false;
  }
}
