import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findDaemon } from '../../../src/ctl/api/config.ts';
import { readSecretFile } from '../../../src/ctl/api/secret-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'sandboxctl-'));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

function stateDir(name: string): string {
  mkdirSync(join(folder, name), { recursive: true });
  file(join(name, 'control-token'), `token-of-${name}\n`);
  return join(folder, name);
}

describe('the address of the daemon', () => {
  it('is the flag, else the environment, else port 49983 of this machine', () => {
    const env = { SANDBOXD_URL: 'http://127.0.0.1:2' };
    expect(findDaemon({ url: 'http://127.0.0.1:1/' }, env).address.shown).toBe('http://127.0.0.1:1');
    expect(findDaemon({}, env).address.shown).toBe('http://127.0.0.1:2');
    expect(findDaemon({}, { SANDBOXD_URL: '' }).address.shown).toBe('http://localhost:49983');
  });

  it.each(['unix:/run/a.sock', 'unix:///run/a.sock'])('can be the Unix socket %s', (url) => {
    expect(findDaemon({ url }, {}).address.socket_path).toBe('/run/a.sock');
  });

  it.each(['', 'localhost:49983', 'ftp://localhost', 'unix:', 'unix:relative', '/run/a.sock'])(
    'cannot be %j',
    (url) => {
      expect(() => findDaemon({ url }, {})).toThrow('--url must be http://…, https://… or unix:/path');
    },
  );
});

describe('the control token', () => {
  it('is of the flag, else of the environment, each by token file before state directory', () => {
    const [a, b] = [file('token-a', 'a\n'), file('token-b', 'b\n')];
    const [c, d] = [stateDir('c'), stateDir('d')];
    const env = { SANDBOXD_CONTROL_TOKEN_FILE: b, SANDBOXD_STATE_DIR: d };
    const owned = (value: string, path: string) => ({ value, owner: { uid: process.getuid?.(), path } });
    expect(findDaemon({ tokenFile: a, stateDir: c }, env).token).toEqual({ value: 'a' });
    expect(findDaemon({ stateDir: c }, env).token).toEqual(owned('token-of-c', `${c}/control-token`));
    expect(findDaemon({}, env).token).toEqual(owned('b', b));
    expect(findDaemon({}, { SANDBOXD_STATE_DIR: d }).token).toEqual(
      owned('token-of-d', `${d}/control-token`),
    );
  });

  it('must be readable where its file is named, and may be missing in the state directory', () => {
    expect(() => findDaemon({ tokenFile: join(folder, 'none') }, {})).toThrow('none: no such file');
    const { token } = findDaemon({ stateDir: folder }, {});
    expect(token).toEqual({ missing: `cannot read ${folder}/control-token: no such file` });
  });

  it.each([
    ['http://192.0.2.1:49983', /is sent to this machine only$/],
    ['http://localhost.example.com', /is sent to this machine only$/],
    ['https://localhost:49983', /is sent to this machine only$/],
    ['unix:/run/a.sock', /^a Unix socket requires no token$/],
  ])('of a state directory is not for %s', (url, missing) => {
    const { token } = findDaemon({ stateDir: stateDir('e'), url }, {});
    expect(token).toEqual({ missing: expect.stringMatching(missing) });
  });

  it('is refused where a header cannot carry it, without being shown', () => {
    expect(() => findDaemon({ tokenFile: file('two-lines', 'one\ntwo\n') }, {})).toThrow(
      /two-lines does not contain a token$/,
    );
  });
});

describe('a secret file', () => {
  it('gives up one trailing newline and nothing else', () => {
    expect(readSecretFile(file('s1', ' a b \n\n'))).toBe(' a b \n');
    expect(readSecretFile(file('s2', 'a'))).toBe('a');
  });

  it('must not be empty', () => {
    expect(() => readSecretFile(file('s3', '\n'))).toThrow('s3 is empty');
  });
});
