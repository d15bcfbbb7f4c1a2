import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { temporaryName } from '../../../../src/contract/temporary-file.ts';
import { type Answer, type Asked, LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { scratchFolder } from '../../../support/scratch.ts';

let daemon: LocalDaemon;
let folder: string;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
  folder = scratchFolder();
});

const query = (path: string, more = '') => `path=${encodeURIComponent(path)}${more}`;
const ask = (method: string, route: string, path: string, asked: Asked & { more?: string } = {}) =>
  daemon.ask(`/files${route}?${query(path, asked.more)}`, { method, ...asked });
const both = (verb: 'move' | 'copy', source: string, destination: string, more = {}) =>
  daemon.ask(`/files/${verb}`, { json: { source, destination, ...more } });
const outcome = ({ status, error }: Answer) => [
  status,
  error?.code,
  error?.details?.path ?? error?.details?.field,
];

describe('a slash at the end of a path', () => {
  beforeEach(() => {
    mkdirSync(join(folder, 'dir'));
    writeFileSync(join(folder, 'dir/file'), 'kept');
    writeFileSync(join(folder, 'file'), 'kept');
    symlinkSync('dir', join(folder, 'link'));
    symlinkSync('file', join(folder, 'to-file'));
  });
  const at = (name: string) => join(folder, name);
  const slashed = (name: string) => `${folder}/${name}/`;

  it('stands for the directory that a link leads to, where it is described', async () => {
    const { data } = await ask('GET', '/stat', slashed('link'));
    expect(data).toMatchObject({
      name: 'link',
      path: at('link'),
      type: 'dir',
      is_link: false,
      link_target: null,
    });
    expect((await ask('GET', '/stat', at('link'))).data).toMatchObject({ type: 'dir', is_link: true });
    for (const name of ['to-file', 'file'])
      expect(outcome(await ask('GET', '/stat', slashed(name)))).toEqual([
        409,
        'not_a_directory',
        slashed(name),
      ]);
  });

  it('is no way to change a link as if it were the directory, nor the directory by a link', async () => {
    for (const name of ['link', 'to-file', 'file'])
      expect(outcome(await ask('DELETE', '', slashed(name), { more: '&recursive=true' }))).toEqual([
        409,
        'not_a_directory',
        slashed(name),
      ]);
    for (const name of ['link', 'to-file'])
      expect(outcome(await both('move', slashed(name), at('moved')))).toEqual([
        409,
        'not_a_directory',
        slashed(name),
      ]);
    expect(outcome(await both('copy', slashed('to-file'), at('copy')))).toEqual([
      409,
      'not_a_directory',
      slashed('to-file'),
    ]);
    expect((await both('copy', slashed('link'), at('copy'))).status).toBe(200);
    expect([readdirSync(at('copy')), readlinkSync(at('link')), readFileSync(at('dir/file'), 'utf8')]).toEqual(
      [['file'], 'dir', 'kept'],
    );
  });

  it('is no place for a file', async () => {
    for (const verb of ['move', 'copy'] as const) {
      expect(outcome(await both(verb, at('file'), slashed('new')))).toEqual([
        409,
        'not_a_directory',
        slashed('new'),
      ]);
    }
    for (const path of [slashed('new'), `${slashed('new')}.`])
      expect(outcome(await ask('PUT', '', path, { body: 'x' }))).toEqual([409, 'is_a_directory', path]);
    expect((await both('copy', at('dir'), slashed('new'))).status).toBe(200);
    expect((await both('move', at('dir'), slashed('newer'))).status).toBe(200);
    expect((await ask('POST', '', slashed('made'), { more: '&mkdir=true' })).status).toBe(201);
    expect((await ask('POST', '', slashed('link'), { more: '&mkdir=true' })).error.code).toBe(
      'already_exists',
    );
    expect(readdirSync(folder).sort()).toEqual(['file', 'link', 'made', 'new', 'newer', 'to-file']);
  });
});

describe('a refusal', () => {
  it('names the path or the field at fault', async () => {
    const at = (name: string) => join(folder, name);
    mkdirSync(at('dir/sub'), { recursive: true });
    writeFileSync(at('file'), 'old');
    execFileSync('mkfifo', [at('pipe')]);
    symlinkSync('round', at('round'));
    const { state_dir } = daemon.daemon.config;
    const none = at('none');
    const cases: [answer: Promise<Answer>, status: number, code: string, named: string][] = [
      [ask('GET', '', none), 404, 'not_found', none],
      [ask('GET', '/stat', none), 404, 'not_found', none],
      [ask('GET', '/list', none), 404, 'not_found', none],
      [ask('GET', '/archive', none), 404, 'not_found', none],
      [ask('DELETE', '', none), 404, 'not_found', none],
      [both('move', none, at('x')), 404, 'not_found', none],
      [both('copy', none, at('x')), 404, 'not_found', none],
      [both('copy', at('file'), at('no/x')), 404, 'not_found', at('no/x')],
      [ask('GET', '', at('dir')), 409, 'is_a_directory', at('dir')],
      [ask('PUT', '', at('dir'), { body: '' }), 409, 'is_a_directory', at('dir')],
      [ask('GET', '/list', at('file')), 409, 'not_a_directory', at('file')],
      [ask('PUT', '/archive', at('file'), { body: '' }), 409, 'not_a_directory', at('file')],
      [both('copy', at('dir'), at('file'), { overwrite: true }), 409, 'not_a_directory', at('file')],
      [both('copy', at('file'), at('dir'), { overwrite: true }), 409, 'is_a_directory', at('dir')],
      [ask('GET', '', at('pipe')), 409, 'not_a_file', at('pipe')],
      [ask('PUT', '', at('pipe'), { body: '' }), 409, 'not_a_file', at('pipe')],
      [both('copy', at('pipe'), at('x')), 409, 'not_a_file', at('pipe')],
      [ask('POST', '', at('dir'), { more: '&mkdir=true' }), 409, 'already_exists', at('dir')],
      [both('move', at('file'), at('dir')), 409, 'already_exists', at('dir')],
      [ask('DELETE', '', at('dir')), 409, 'directory_not_empty', at('dir')],
      [ask('DELETE', '', '/proc'), 409, 'conflict', '/proc'],
      [ask('GET', '', at('round')), 400, 'invalid_request', 'path'],
      [both('move', at('dir'), at('dir/sub/x')), 400, 'invalid_request', 'destination'],
      [ask('GET', '/stat', state_dir), 403, 'forbidden', state_dir],
      [both('copy', state_dir, at('x')), 403, 'forbidden', state_dir],
      [
        ask('PUT', '', at('file'), { body: '', headers: { 'if-match': '"x"' } }),
        412,
        'precondition_failed',
        at('file'),
      ],
      [
        ask('GET', '', at('file'), { headers: { 'if-match': '"x"' } }),
        412,
        'precondition_failed',
        at('file'),
      ],
      [
        ask('GET', '', at('file'), { headers: { range: 'bytes=9-' } }),
        416,
        'range_not_satisfiable',
        at('file'),
      ],
      [ask('DELETE', '', at('file'), { headers: { 'if-match': '*' } }), 400, 'invalid_request', 'If-Match'],
      [
        ask('POST', '', at('d'), { more: '&mkdir=true', headers: { 'if-none-match': '*' } }),
        400,
        'invalid_request',
        'If-None-Match',
      ],
    ];
    for (const [answer, ...expected] of cases) expect(outcome(await answer)).toEqual(expected);
    expect(readFileSync(at('file'), 'utf8')).toBe('old');
    expect(readdirSync(folder).sort()).toEqual(['dir', 'file', 'pipe', 'round']);
  });
});

describe('the name of an upload under way', () => {
  it('is nothing that a client can hide behind', async () => {
    const name = temporaryName('0123456789abcdef01234567');
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, name));
    symlinkSync(join(folder, `${name}0`.slice(0, -1), 'in'), join(folder, 'link'));
    const path = join(folder, 'new', name);
    const archive = execFileSync('tar', ['-c', '--transform', `s/file/${name}/`, '-C', folder, 'file']);
    const refused: [Promise<Answer>, field: string][] = [
      [ask('PUT', '', path, { body: 'x' }), 'path'],
      [ask('PUT', '', join(folder, name, 'in'), { body: 'x' }), 'path'],
      [ask('PUT', '', join(folder, 'link'), { body: 'x' }), 'path'],
      [ask('POST', '', path, { more: '&mkdir=true&recursive=true' }), 'path'],
      [both('move', join(folder, 'file'), join(folder, name, 'in')), 'destination'],
      [both('copy', join(folder, 'file'), join(folder, name, 'in')), 'destination'],
      [ask('PUT', '/archive', join(folder, name), { body: archive }), 'path'],
      [ask('PUT', '/archive', join(folder, 'unpacked'), { body: archive }), 'body'],
    ];
    for (const [answer, field] of refused)
      expect(outcome(await answer)).toEqual([400, 'invalid_request', field]);
    expect([readdirSync(join(folder, name)), existsSync(join(folder, 'new'))]).toEqual([[], false]);
    expect(lstatSync(join(folder, 'file')).isFile()).toBe(true);
    expect((await ask('PUT', '', join(folder, `${name}0`), { body: 'x' })).status).toBe(200);
  });
});

describe('conditions and ranges', () => {
  it('are judged alike for GET and HEAD, and several ranges are answered with the whole file', async () => {
    const path = join(folder, 'file');
    writeFileSync(path, '0123456789');
    utimesSync(path, 1_000_000, 1_000_000);
    const modified = new Date(1_000_000_000).toUTCString();
    const earlier = new Date(999_000_000).toUTCString();
    const future = new Date(Date.now() + 3_600_000).toUTCString();
    const cases: [headers: Record<string, string>, status: number][] = [
      [{}, 200],
      [{ 'if-modified-since': modified }, 304],
      [{ 'if-modified-since': future }, 200],
      [{ 'if-unmodified-since': earlier }, 412],
      [{ 'if-none-match': '*' }, 304],
      [{ range: 'bytes=0-1,4-5' }, 200],
      [{ range: 'bytes=0-1', 'if-range': modified }, 200],
      [{ range: 'lines=0-1' }, 200],
    ];
    for (const [headers, status] of cases) {
      const get = await ask('GET', '', path, { headers });
      const head = await ask('HEAD', '', path, { headers });
      expect([headers, get.status, head.status]).toEqual([headers, status, status]);
      expect(head.text).toBe('');
      const shown = ({ headers }: Answer) =>
        [...headers].filter(([name]) => !['date', 'connection', 'x-request-id', 'keep-alive'].includes(name));
      expect(shown(head)).toEqual(shown(get));
      if (status === 200) expect(get.text).toBe('0123456789');
    }
    expect(
      (await ask('PUT', '', path, { body: 'x', headers: { 'if-unmodified-since': earlier } })).status,
    ).toBe(412);
    expect(
      (await ask('PUT', '', path, { body: 'x', headers: { 'if-unmodified-since': modified } })).status,
    ).toBe(200);
  });

  it('never tell of a time that is still to come', async () => {
    const path = join(folder, 'file');
    writeFileSync(path, 'x');
    utimesSync(path, 4_000_000_000, 4_000_000_000);
    const told = (await ask('GET', '', path)).headers.get('last-modified') ?? '';
    expect(Date.parse(told)).toBeLessThanOrEqual(Date.now());
    expect((await ask('GET', '', path, { headers: { 'if-modified-since': told } })).status).toBe(200);
  });
});
