import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/manager/database/database.ts';
import { failureOf } from '../support/manager/failing-command.ts';
import { runManagerCommand } from '../support/manager-program.ts';
import { scratchFolder } from '../support/scratch.ts';

function databaseOption(): [string, string] {
  return ['--database', `sqlite:${join(scratchFolder(), 'manager.db')}`];
}

describe('sandbox-manager token', () => {
  it('prints a new token alone, lists without it, and revokes', async () => {
    const database = databaseOption();
    const scopes = ['--scope', 'usage:read', '--scope', 'sandboxes:write'];
    await (await openDatabase(database[1])).close();
    const token = await runManagerCommand('token', 'create', '--team', 'team_1', ...scopes, ...database);
    expect(token).toMatch(/^smt_[\w-]{43}$/);
    const listed = await runManagerCommand('token', 'list', ...database);
    expect(listed).not.toContain(token);
    expect(listed).toMatch(/^tok_\S+ {2}team_1 {2}usage:read,sandboxes:write {2}\S+Z$/);
    const [token_id = ''] = listed.split(' ');
    expect(await runManagerCommand('token', 'revoke', token_id, ...database)).toBe('');
    const { tokens } = JSON.parse(await runManagerCommand('token', 'list', '--json', ...database));
    expect(tokens).toMatchObject([{ token_id, internal: false, revoked_at: expect.any(String) }]);
    const unknown = await failureOf('token', 'revoke', 'tok_nobody', ...database);
    expect(unknown).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'sandbox-manager: there is no token tok_nobody\n',
    });
  });

  it.each([
    [['create', '--team', 't', '--scope', 'everything'], '--scope everything is unknown'],
    [['create', '--team', 't'], '--scope is required'],
    [['create', '--scope', 'admin'], '--team'],
    [['create', '--team', 'a b', '--scope', 'admin'], '--team must be'],
    [['revoke'], 'missing required argument'],
  ])('refuses %j with one line', async (args, line) => {
    const { code, stdout, stderr } = await failureOf('token', ...args, ...databaseOption());
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^sandbox-manager: [^\n]+\n$/);
    expect(stderr).toContain(line);
  });
});

describe.each([
  ['token', 'create', '--team', 't', '--scope', 'admin'],
  ['token', 'list'],
  ['token', 'revoke', 'tok_x'],
  ['quota', 'list', '--team', 't'],
  ['quota', 'set', 'active_sandboxes', '--limit-value', '1', '--team', 't'],
  ['quota', 'unset', 'active_sandboxes', '--team', 't'],
  ['prune', '--teams'],
])('sandbox-manager %s %s without a database', (...args) => {
  it('names the file that is not there, and makes none', async () => {
    const folder = scratchFolder();
    const path = join(folder, 'manager.db');
    const { code, stdout, stderr } = await failureOf(...args, '--database', `sqlite:${path}`);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^sandbox-manager: [^\n]+\n$/);
    expect(stderr).toContain(`--database ${path} is not there`);
    expect(readdirSync(folder)).toEqual([]);
  });
});
