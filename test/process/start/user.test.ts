import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findUser } from '../../../src/process/start/user.ts';
import { scratchFolder } from '../../support/scratch.ts';

const TABLE = `root:x:0:0:root:/root:/bin/bash
# a comment
agent:x:1000:1001:An agent,,,:/home/agent:/bin/sh
broken
homeless:x:1002:1002:::/bin/sh
`;

function table(): string {
  const path = join(scratchFolder(), 'passwd');
  writeFileSync(path, TABLE);
  return path;
}

test('an account is found by its name or its number', async () => {
  const passwd = table();
  const agent = { name: 'agent', uid: 1000, gid: 1001, home: '/home/agent' };
  expect(await findUser('agent', passwd)).toEqual(agent);
  expect(await findUser('1000', passwd)).toEqual(agent);
  expect(await findUser('root')).toMatchObject({ uid: 0, gid: 0 });
});

test('an account without a home has the root directory as its home', async () => {
  expect(await findUser('homeless', table())).toMatchObject({ home: '/' });
});

test.each(['agen', 'x', '1001', 'broken', '# a comment', ''])('there is no account %j', async (name) => {
  expect(await findUser(name, table())).toBeNull();
});

test('without a table there is no account', async () => {
  expect(await findUser('root', '/no/such/file')).toBeNull();
});
