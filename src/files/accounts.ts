import { readFile, stat } from 'node:fs/promises';
import { atMost, systemClock } from '../base/clock.ts';

/** The names of users and groups by their numbers. */
export interface AccountNames {
  /** The number as text where there is no such user. */
  user(uid: number): string;
  /** The number as text where there is no such group. */
  group(gid: number): string;
}

const PASSWD = '/etc/passwd';
const GROUP = '/etc/group';

/** How long is waited for a table, in ms: it may be a link to a file system that hangs. */
const TABLE_TIMEOUT_MS = 1_000;

/** Reads a table again only once it has changed. While its file system does not answer, it is as it was. */
class Table {
  readonly #path: string;
  #stamp = '';
  #lines: string[][] = [];
  #reading: Promise<void> | null = null;
  #is_late = false;

  constructor(path: string) {
    this.#path = path;
  }

  async lines(): Promise<string[][]> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
      this.#is_late = false;
    });
    if (!this.#is_late) await this.#inTime(this.#reading);
    return this.#lines;
  }

  async #inTime(reading: Promise<void>): Promise<void> {
    await atMost(systemClock, TABLE_TIMEOUT_MS, reading);
    this.#is_late = this.#reading === reading;
  }

  async #read(): Promise<void> {
    const stamp = await stat(this.#path).then(
      ({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`,
      () => '',
    );
    if (stamp === this.#stamp) return;
    const text = await readFile(this.#path, 'utf8').catch(() => '');
    this.#lines = linesOf(text);
    this.#stamp = stamp;
  }
}

function linesOf(text: string): string[][] {
  return text.split('\n').map((line) => line.split(':'));
}

const users = new Table(PASSWD);
const groups = new Table(GROUP);

/** The names as the tables have them now. */
export async function accountNames(): Promise<AccountNames> {
  const user_names = namesOf(await users.lines());
  const group_names = namesOf(await groups.lines());
  return {
    user: (uid) => user_names.get(uid) ?? String(uid),
    group: (gid) => group_names.get(gid) ?? String(gid),
  };
}

/** The first of several names for one number counts. */
function namesOf(lines: readonly string[][]): Map<number, string> {
  const names = new Map<number, string>();
  for (const [name, , id = ''] of lines) {
    if (name && /^\d+$/.test(id) && !names.has(Number(id))) names.set(Number(id), name);
  }
  return names;
}
