import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Asked, LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { eventually } from '../../../support/eventually.ts';
import { scratchFolder } from '../../../support/scratch.ts';

let daemon: LocalDaemon;
let folder: string;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
  folder = scratchFolder();
});

const ask = (method: string, route: string, path: string, more = '', asked: Asked = {}) =>
  daemon.ask(`/files${route}?path=${encodeURIComponent(path)}${more}`, { method, ...asked });
const two = (verb: string, body: object) => daemon.ask(`/files/${verb}`, { json: body });
const codeOf = ({ status, error }: Awaited<ReturnType<typeof ask>>) => [status, error?.code];

describe('bodies', () => {
  it('that are not as long as they say leave nothing, or what they say alone', async () => {
    const { port } = new URL(daemon.url);
    const send = async (name: string, framing: string, body: string) => {
      const path = `/api/v1/files?path=${encodeURIComponent(join(folder, name))}`;
      const { authorization } = daemon.authorization;
      const socket = connect(Number(port), '127.0.0.1');
      socket.end(
        `PUT ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${authorization}\r\n${framing}\r\n\r\n${body}`,
      );
      return text(socket).catch(() => '');
    };
    const statuses = (answer: string) =>
      [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    // What follows is another request, which makes no sense.
    expect(statuses(await send('longer', 'Content-Length: 4', 'four and more')).at(-1)).toBe('400');
    expect(statuses(await send('shorter', 'Content-Length: 10', 'four'))).not.toContain('200');
    expect(statuses(await send('cut', 'Transfer-Encoding: chunked', '5\r\nfo'))).not.toContain('200');
    expect(statuses(await send('wrong', 'Transfer-Encoding: chunked', 'x\r\nfo'))).not.toContain('200');
    expect(
      statuses(await send('both', 'Transfer-Encoding: chunked\r\nContent-Length: 4', '0\r\n\r\n')),
    ).toEqual(['400']);
    expect(statuses(await send('archive', 'Content-Length: -1', ''))).toEqual(['400']);
    await eventually(() => expect(readdirSync(folder).filter((name) => name !== 'longer')).toEqual([]));
    if (existsSync(join(folder, 'longer'))) expect(readFileSync(join(folder, 'longer'), 'utf8')).toBe('four');
  });
});

describe('names', () => {
  it('may have 255 bytes, and paths 4 095', async () => {
    const name = `${'ü'.repeat(127)}n`;
    let deep = folder;
    while (deep.length + 300 < 3_700) deep += `/${'d'.repeat(255)}`;
    expect((await ask('POST', '', deep, '&mkdir=true&recursive=true')).status).toBe(201);
    const path = join(deep, name);
    expect((await ask('PUT', '', path, '', { body: 'deep' })).status).toBe(200);
    expect((await ask('GET', '', path)).text).toBe('deep');
    expect((await ask('GET', '/stat', path)).data).toMatchObject({ name, size: 4 });
    expect((await ask('GET', '/list', folder, '&depth=32')).data.entries.at(-1).path).toBe(path);
    expect((await two('copy', { source: path, destination: join(deep, 'copy') })).status).toBe(200);
    expect((await two('move', { source: join(deep, 'copy'), destination: join(folder, name) })).status).toBe(
      200,
    );
    const unpacked = join(folder, 'unpacked');
    const archive = await fetch(`${daemon.url}/files/archive?path=${encodeURIComponent(folder)}`, {
      headers: daemon.authorization,
    });
    const body = new Uint8Array(await archive.arrayBuffer());
    expect((await ask('PUT', '/archive', unpacked, '', { body })).status).toBe(200);
    expect(readFileSync(unpacked + path.slice(folder.length), 'utf8')).toBe('deep');
    expect(
      (await ask('DELETE', '', folder + deep.slice(folder.length, folder.length + 256), '&recursive=true'))
        .status,
    ).toBe(200);
    const longest = `/${'x/'.repeat(2_047)}`;
    expect((await ask('GET', '', longest)).error).toMatchObject({
      code: 'not_found',
      details: { path: longest },
    });
    for (const wrong of [`${longest}x`, `/${'n'.repeat(256)}`])
      expect((await ask('PUT', '', wrong, '', { body: '' })).error).toMatchObject({
        code: 'invalid_request',
        details: { field: 'path' },
      });
  });

  it('that are not UTF-8 are reached by their bytes on every route', async () => {
    const bytes = (name: string) => Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, 'latin1')]);
    const given = (name: string) => `path_base64=${encodeURIComponent(bytes(name).toString('base64'))}`;
    const at = (method: string, route: string, name: string, more = '', asked: Asked = {}) =>
      daemon.ask(`/files${route}?${given(name)}${more}`, { method, ...asked });
    expect((await at('POST', '', 'd\xff', '&mkdir=true')).status).toBe(201);
    const written = await at('PUT', '', 'd\xff/f\xfe', '', { body: 'bytes' });
    expect([written.status, written.data.path_base64]).toEqual([
      200,
      bytes('d\xff/f\xfe').toString('base64'),
    ]);
    expect((await at('GET', '', 'd\xff/f\xfe')).text).toBe('bytes');
    expect((await at('HEAD', '', 'd\xff/f\xfe')).headers.get('content-length')).toBe('5');
    expect((await at('GET', '/stat', 'd\xff')).data).toMatchObject({ name: 'd\ufffd', type: 'dir' });
    expect((await at('GET', '/list', 'd\xff')).data.entries).toMatchObject([{ name: 'f\ufffd' }]);
    const base64 = (name: string) => bytes(name).toString('base64');
    for (const verb of ['copy', 'move'])
      expect(
        (await two(verb, { source_base64: base64('d\xff'), destination_base64: base64(`${verb}\xfd`) }))
          .status,
      ).toBe(200);
    const archive = await fetch(`${daemon.url}/files/archive?${given('copy\xfd')}`, {
      headers: daemon.authorization,
    });
    const body = new Uint8Array(await archive.arrayBuffer());
    expect((await at('PUT', '/archive', 'un\xfcpacked', '', { body })).data).toEqual({
      entries: 1,
      bytes: 5,
    });
    expect(readFileSync(bytes('un\xfcpacked/f\xfe'), 'utf8')).toBe('bytes');
    expect((await at('DELETE', '', 'move\xfd', '&recursive=true')).status).toBe(200);
    expect(readdirSync(folder, 'latin1').sort()).toEqual(['copy\xfd', 'un\xfcpacked']);
    expect((await two('move', { source_base64: '*', destination: '/x' })).error.details?.field).toBe(
      'source_base64',
    );
    const none = await at('GET', '', 'none\xff');
    expect(none.error).toMatchObject({ code: 'not_found', details: { path: `${folder}/none\ufffd` } });
  });
});

describe('what is no plain tree', () => {
  it('cycles of links end: links are listed, copied, packed and removed as links', async () => {
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    symlinkSync('..', join(folder, 'a/b/up'));
    symlinkSync('self', join(folder, 'a/self'));
    symlinkSync('two', join(folder, 'a/one'));
    symlinkSync('one', join(folder, 'a/two'));
    const { entries } = (await ask('GET', '/list', folder, '&depth=32')).data;
    expect(
      entries.map(({ path, type }: { path: string; type: string }) => [path.slice(folder.length), type]),
    ).toEqual([
      ['/a', 'dir'],
      ['/a/b', 'dir'],
      ['/a/b/up', 'dir'],
      ['/a/one', 'symlink'],
      ['/a/self', 'symlink'],
      ['/a/two', 'symlink'],
    ]);
    expect((await two('copy', { source: join(folder, 'a'), destination: join(folder, 'copy') })).status).toBe(
      200,
    );
    expect(readlinkSync(join(folder, 'copy/b/up'))).toBe('..');
    const { headers, text: packed } = await ask('GET', '/archive', join(folder, 'a'));
    expect([headers.get('content-type'), packed.length]).toEqual(['application/x-tar', expect.any(Number)]);
    for (const path of ['a/one', 'a/self/x'])
      for (const [method, route] of [
        ['GET', ''],
        ['GET', '/list'],
        ['PUT', ''],
      ] as const)
        expect(
          (await ask(method, route, join(folder, path), '', method === 'PUT' ? { body: '' } : {})).error,
        ).toMatchObject({
          code: 'invalid_request',
          details: { field: 'path' },
        });
    expect((await ask('DELETE', '', join(folder, 'a'), '&recursive=true')).status).toBe(200);
    expect(readdirSync(folder)).toEqual(['copy']);
  });

  it('files of /proc are read whole although their size is 0', async () => {
    const version = readFileSync('/proc/version', 'utf8');
    const read = await ask('GET', '', '/proc/version', '', {
      headers: { range: 'bytes=1-2', 'if-none-match': '*' },
    });
    expect([read.status, read.text, read.headers.get('accept-ranges')]).toEqual([200, version, 'none']);
    expect(['content-length', 'etag'].map((name) => read.headers.get(name))).toEqual([null, null]);
    expect((await ask('HEAD', '', '/proc/version')).status).toBe(200);
    expect((await two('copy', { source: '/proc/version', destination: join(folder, 'copy') })).status).toBe(
      200,
    );
    expect(readFileSync(join(folder, 'copy'), 'utf8')).toBe(version);
    expect(codeOf(await ask('GET', '/archive', '/proc/version'))).toEqual([409, 'conflict']);
  });

  it('a directory of 100 000 entries is listed in pages, while others come and go', {
    timeout: 180_000,
  }, async () => {
    const names = Array.from({ length: 100_000 }, (_, i) => `f${String(i).padStart(6, '0')}`);
    for (const name of names) writeFileSync(join(folder, name), '');
    const passing = (name: string) => Number(name.slice(1)) % 1_000 === 500;
    const listed: string[] = [];
    let cursor = '';
    for (let page = 0; ; page++) {
      const { data } = await ask('GET', '/list', folder, cursor);
      listed.push(...data.entries.map(({ name }: { name: string }) => name));
      if (data.next_cursor === null) break;
      expect(data.entries).toHaveLength(10_000);
      cursor = `&cursor=${data.next_cursor}`;
      for (const name of names.slice(page * 10_000, (page + 2) * 10_000))
        if (passing(name)) {
          rmSync(join(folder, name), { force: true });
          writeFileSync(join(folder, `${name}-new-${page}`), '');
        }
    }
    const old = listed.filter((name) => !name.includes('-') && !passing(name));
    expect(old).toEqual(names.filter((name) => !passing(name)));
    expect(new Set(listed).size).toBe(listed.length);
    expect(listed).toEqual([...listed].sort());
    expect(listed.some((name) => name.includes('-new-'))).toBe(true);
  });
});
