import { readFileSync } from 'node:fs';

/** An account that processes run as. */
export interface User {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

const PASSWD = '/etc/passwd';

/** The account with this name or number in /etc/passwd, or null if there is none. */
export function findUser(name_or_uid: string, passwd = PASSWD): User | null {
  for (const line of tableIn(passwd).split('\n')) {
    const [name, , uid, gid, , home] = line.split(':');
    if (name === undefined || uid === undefined || gid === undefined) continue;
    if (name !== name_or_uid && uid !== name_or_uid) continue;
    return { name, uid: Number(uid), gid: Number(gid), home: home || '/' };
  }
  return null;
}

function tableIn(passwd: string): string {
  try {
    return readFileSync(passwd, 'utf8');
  } catch {
    return '';
  }
}
