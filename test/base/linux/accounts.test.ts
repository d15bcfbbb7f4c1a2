import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findAccount } from '../../../src/base/linux/accounts.ts';
import { scratchFolder } from '../../support/scratch.ts';

const TABLE = `root:x:0:0:root:/root:/bin/bash
# a comment
agent:x:1000:1001:An agent,,,:/home/agent:/bin/sh
broken
homeless:x:1002:1002:::/bin/sh
1000:x:1003:1003::/home/number:/bin/sh
odd:x:-1:0::/:/bin/sh
`;

function table(): string {
  const path = join(scratchFolder(), 'passwd');
  writeFileSync(path, TABLE);
  return path;
}

test('an account is found by its name or its number', async () => {
  const passwd = table();
  const agent = { name: 'agent', uid: 1000, gid: 1001, home: '/home/agent' };
  expect(await findAccount('agent', passwd)).toEqual(agent);
  expect(await findAccount('1001', passwd)).toBeNull();
  expect(await findAccount('1002', passwd)).toMatchObject({ name: 'homeless' });
  expect(await findAccount('root')).toMatchObject({ uid: 0, gid: 0 });
});

test('a name that is a number counts before the number', async () => {
  expect(await findAccount('1000', table())).toMatchObject({ uid: 1003 });
});

test('an account without a home has the root directory as its home', async () => {
  expect(await findAccount('homeless', table())).toMatchObject({ home: '/' });
});

test.each(['agen', 'x', '1001', 'broken', '# a comment', 'odd', '-1', ''])(
  'there is no account %j',
  async (name) => {
    expect(await findAccount(name, table())).toBeNull();
  },
);

test('without a table there is no account', async () => {
  expect(await findAccount('root', '/no/such/file')).toBeNull();
});
