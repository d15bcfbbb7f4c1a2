import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findTarget, type TargetOptions } from '../../../src/ctl/settings/target.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** An environment whose config file holds this, beside the token files `a`, `b` and `c`. */
function home(yaml: string, mode = 0o600): NodeJS.ProcessEnv & { XDG_CONFIG_HOME: string } {
  const folder = scratchFolder();
  mkdirSync(join(folder, 'sandboxctl'));
  for (const name of ['a', 'b', 'c']) writeFileSync(join(folder, 'sandboxctl', name), `token-${name}\n`);
  writeFileSync(join(folder, 'sandboxctl/config.yaml'), yaml);
  chmodSync(join(folder, 'sandboxctl/config.yaml'), mode);
  return { XDG_CONFIG_HOME: folder };
}

const TWO = `
default_profile: first
profiles:
  first: { manager: "https://first.example", token_file: a, sandbox: sbx_1 }
  second: { manager: "https://second.example/base", token_file: b }
  here: { url: "http://127.0.0.1:1", token_file: c }
`;

async function shown(flags: TargetOptions, env: NodeJS.ProcessEnv, needs_manager?: boolean): Promise<string> {
  const target = await findTarget(flags, env, needs_manager);
  const token = 'value' in target.token ? target.token.value : '-';
  const sandbox = target.of === 'manager' ? (target.sandbox ?? '-') : 'daemon';
  return `${target.address.url.href} ${token} ${sandbox}`;
}

describe('where a command goes', () => {
  it('is what flags say, then --profile, then the environment, then the default profile', async () => {
    const env = home(TWO);
    const b = join(env.XDG_CONFIG_HOME, 'sandboxctl/b');
    const outer = { ...env, SANDBOXCTL_MANAGER: 'https://outer.example', SANDBOXCTL_TOKEN_FILE: b };
    const inner = { ...env, SANDBOXD_URL: 'http://127.0.0.1:2' };
    expect(await shown({}, env)).toBe('https://first.example/ token-a sbx_1');
    expect(await shown({}, outer)).toBe('https://outer.example/ token-b -');
    expect(await shown({}, inner)).toBe('http://127.0.0.1:2/ - daemon');
    expect(await shown({ profile: 'second' }, outer)).toBe('https://second.example/base token-b -');
    expect(await shown({ profile: 'here' }, outer)).toBe('http://127.0.0.1:1/ token-c daemon');
    expect(await shown({ manager: 'https://flag.example', profile: 'first' }, outer)).toBe(
      'https://flag.example/ token-a sbx_1',
    );
    expect(await shown({ sandbox: 'sbx_2' }, { ...outer, SANDBOXCTL_SANDBOX: 'sbx_3' })).toMatch(/sbx_2$/);
    expect(await shown({ url: 'http://127.0.0.1:3' }, outer)).toBe('http://127.0.0.1:3/ - daemon');
    expect(await shown({}, { ...env, SANDBOXCTL_PROFILE: 'second' })).toMatch(/^https:\/\/second/);
    expect(await shown({}, home('profiles:\n'))).toBe('http://localhost:49983/ - daemon');
    expect(await shown({}, { XDG_CONFIG_HOME: scratchFolder() })).toBe('http://localhost:49983/ - daemon');
  });

  it('is a manager wherever a sandbox of one is meant', async () => {
    const env = { ...home(TWO), SANDBOXD_URL: 'http://127.0.0.1:2' };
    expect(await shown({ sandbox: 'sbx_2' }, env)).toBe('https://first.example/ token-a sbx_2');
    expect(await shown({}, env, true)).toBe('https://first.example/ token-a sbx_1');
    await expect(findTarget({ profile: 'here' }, env, true)).rejects.toThrow('here names no manager');
    await expect(findTarget({}, home(''), true)).rejects.toThrow('no manager given');
  });

  it('takes the token itself from the environment, and no two of them', async () => {
    const env = { ...home(TWO), SANDBOXCTL_MANAGER: 'https://outer.example', SANDBOXCTL_TOKEN: 'smt_1' };
    const b = join(env.XDG_CONFIG_HOME, 'sandboxctl/b');
    expect(await shown({}, env)).toBe('https://outer.example/ smt_1 -');
    expect(await shown({ tokenFile: b }, env)).toBe('https://outer.example/ token-b -');
    expect(await shown({ profile: 'second' }, env)).toMatch(/token-b/);
    await expect(findTarget({}, { ...env, SANDBOXCTL_TOKEN_FILE: b })).rejects.toThrow('are both set');
    await expect(findTarget({}, { ...env, SANDBOXCTL_TOKEN: 'a b' })).rejects.toThrow('SANDBOXCTL_TOKEN');
    expect(await shown({}, { SANDBOXCTL_TOKEN: 'smt_1' })).toBe('http://localhost:49983/ - daemon');
  });

  it("gives a profile's token to another manager only where the profile is named on the command line", async () => {
    const env = home(TWO);
    const other = { manager: 'https://other.example' };
    await expect(findTarget(other, env)).rejects.toThrow('there is no token for https://other.example');
    await expect(findTarget({}, { ...env, SANDBOXCTL_MANAGER: 'https://first.example:444' })).rejects.toThrow(
      'there is no token for https://first.example:444',
    );
    expect(await shown({ manager: 'https://first.example' }, env)).toBe('https://first.example/ token-a -');
    expect(await shown({ ...other, profile: 'first' }, env)).toMatch(/token-a/);
  });

  it.each(['manager', 'ftp://a.example', 'https://user:secret@a.example', 'https://a.example?token=secret'])(
    'cannot be the manager %s, and a secret in it is not shown',
    async (manager) => {
      const wrong = findTarget({ manager, tokenFile: '/none' }, {});
      await expect(wrong).rejects.toMatchObject({
        exit_code: 2,
        message: 'the URL of a manager must be http://… or https://…, without credentials and query',
      });
    },
  );

  it('does not read the config file where flags or environment decide', async () => {
    const env = home('no: such: thing');
    expect(await shown({ url: 'http://127.0.0.1:3' }, env)).toMatch(/:3/);
    expect(await shown({}, { ...env, SANDBOXD_URL: 'http://127.0.0.1:2' })).toMatch(/:2/);
    await expect(findTarget({}, env)).rejects.toThrow('config.yaml: is not valid YAML: line 1, column');
  });
});

describe('the config file', () => {
  it.each([
    ['profile: x', 'profile: unknown field (Did you mean profiles?)'],
    ['profiles: { a: { managr: x } }', 'profiles.a.managr: unknown field (Did you mean manager?)'],
    ['profiles: { a: { zzzzzz: x } }', 'profiles.a.zzzzzz: unknown field'],
    ['profiles: { a: { manager: 7 } }', 'profiles.a.manager: must be a text that is not empty'],
    ['profiles: { a: x }', 'profiles.a: must be a mapping of keys to values'],
    ['- a', 'must be a mapping of keys to values'],
    ['profiles: { a: { token_file: x } }', 'profiles.a: needs manager or url'],
    ['profiles: { a: { manager: x, url: y } }', 'profiles.a: manager cannot be used with url or state_dir'],
    ['profiles: { a: { url: x, sandbox: y } }', 'profiles.a: sandbox needs manager'],
    [
      'profiles: { a: { url: x, token: y, token_file: z } }',
      'profiles.a: token cannot be used with token_file',
    ],
    ['profiles: { "a b": { url: x } }', 'profiles.a b: the name must be 1 to 64 of A-Z a-z 0-9 _ - .'],
    ['profiles: { __proto__: { url: x } }\ndefault_profile: b', 'there is no profile "b": '],
  ])('is refused with the field that is wrong: %s', async (yaml, message) => {
    const refused = findTarget({}, home(yaml));
    await expect(refused).rejects.toMatchObject({ exit_code: 2, message: expect.stringContaining(message) });
  });

  it('names the profiles that there are where one is asked for that there is not', async () => {
    const env = home(TWO);
    const path = join(env.XDG_CONFIG_HOME, 'sandboxctl/config.yaml');
    await expect(findTarget({ profile: 'third' }, env)).rejects.toThrow(
      `there is no profile "third": ${path} has first, second, here`,
    );
    await expect(findTarget({ profile: 'x' }, { XDG_CONFIG_HOME: '/none' })).rejects.toThrow(
      'there is no profile "x": /none/sandboxctl/config.yaml has none',
    );
  });

  it('may hold a token only where nobody else can read it, and is no secret otherwise', async () => {
    const yaml = 'default_profile: a\nprofiles: { a: { manager: "http://m.example", token: secret } }';
    expect(await shown({}, home(yaml))).toBe('http://m.example/ secret -');
    await expect(findTarget({}, home(yaml, 0o640))).rejects.toThrow('holds a token and must have mode 0600');
    expect(await shown({}, home(TWO, 0o644))).toMatch(/token-a/);
    await expect(findTarget({}, home(TWO, 0o666))).rejects.toThrow('can be written by all');
  });

  it('quotes no line of a file that is no YAML', async () => {
    const wrong = findTarget({}, home('profiles:\n  a:\n    token: "secret\n'));
    await expect(wrong).rejects.toThrow(/^[^\n]*config\.yaml: is not valid YAML: line \d+, column \d+$/);
  });
});
