import { readOutside } from './read-outside.ts';

/** An account of /etc/passwd. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

const PASSWD = '/etc/passwd';
/** More than the table of any machine that has its accounts in a file. */
const TABLE_MAX_BYTES = 1024 * 1024;
const NUMBER = /^\d{1,10}$/;

/**
 * The account with this name in /etc/passwd, or else with this number, as chown(1) has it; null if there is none. Throws
 * `unavailable` if the table's file system does not answer.
 */
export async function findAccount(name_or_uid: string, passwd = PASSWD): Promise<Account | null> {
  const table = await readOutside(passwd, TABLE_MAX_BYTES);
  return table === null ? null : accountIn(table, name_or_uid);
}

function accountIn(table: Buffer, name_or_uid: string): Account | null {
  // The last line may be cut off.
  const end = table.length < TABLE_MAX_BYTES ? table.length : table.lastIndexOf('\n');
  let by_number: Account | null = null;
  for (const line of table.toString('utf8', 0, end).split('\n')) {
    const [name = '', , uid = '', gid = '', , home] = line.split(':');
    if (name === '' || !NUMBER.test(uid) || !NUMBER.test(gid)) continue;
    const account = { name, uid: Number(uid), gid: Number(gid), home: home || '/' };
    if (name === name_or_uid) return account;
    if (uid === name_or_uid) by_number ??= account;
  }
  return by_number;
}
