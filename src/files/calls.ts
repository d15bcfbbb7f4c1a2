import * as now from 'node:fs';
import * as pool from 'node:fs/promises';
import { isMainThread } from 'node:worker_threads';

/** Opens a name without any right to its content, and without any effect on it. From <fcntl.h>; Node does not name it. */
export const O_PATH = 0o10000000;

/** An open name. */
export interface Opened {
  readonly fd: number;
  stat(): Promise<now.Stats>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Threads for lists and archives make the calls below by themselves: the way to the pool of the process and back costs more
 * than most of them. The main thread, which others wait for, leaves them to the pool.
 */
const is_at_once = !isMainThread;

/** Opens a name. Throws the system's error, as all of these do. */
export async function open(path: string | Buffer, flags: number): Promise<Opened> {
  return is_at_once ? new OpenedAtOnce(now.openSync(path, flags)) : pool.open(path, flags);
}

/** What a name is; of a link, the link. */
export async function lstat(path: string | Buffer): Promise<now.Stats> {
  return is_at_once ? now.lstatSync(path) : pool.lstat(path);
}

/** What a name leads to. */
export async function stat(path: string | Buffer): Promise<now.Stats> {
  return is_at_once ? now.statSync(path) : pool.stat(path);
}

/** The target of a link, a character per byte. */
export async function readlink(path: string | Buffer): Promise<string> {
  return is_at_once ? now.readlinkSync(path, 'latin1') : pool.readlink(path, 'latin1');
}

class OpenedAtOnce implements Opened {
  readonly fd: number;
  #is_open = true;

  constructor(fd: number) {
    this.fd = fd;
  }

  async stat(): Promise<now.Stats> {
    return now.fstatSync(this.fd);
  }

  async close(): Promise<void> {
    if (this.#is_open) now.closeSync(this.fd);
    this.#is_open = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
