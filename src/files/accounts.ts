import { readFile, stat } from 'node:fs/promises';

/** The names of users and groups by their numbers. */
export interface AccountNames {
  /** The number as text where there is no such user. */
  user(uid: number): string;
  /** The number as text where there is no such group. */
  group(gid: number): string;
}

const PASSWD = '/etc/passwd';
const GROUP = '/etc/group';

/** Reads a table again only once it has changed. */
class Table {
  readonly #path: string;
  #stamp = '';
  #lines: string[][] = [];

  constructor(path: string) {
    this.#path = path;
  }

  async lines(): Promise<string[][]> {
    const stamp = await stat(this.#path).then(
      ({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`,
      () => '',
    );
    if (stamp !== this.#stamp) {
      const text = await readFile(this.#path, 'utf8').catch(() => '');
      this.#lines = text.split('\n').map((line) => line.split(':'));
      this.#stamp = stamp;
    }
    return this.#lines;
  }
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
