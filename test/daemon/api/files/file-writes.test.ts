import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { temporaryName } from '../../../../src/contract/temporary-file.ts';
import { DOWN_URL, LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { createDaemon } from '../../../support/daemon/running-daemon.ts';
import { eventually } from '../../../support/eventually.ts';
import { IS_ROOT } from '../../../support/rights.ts';
import { scratchFolder } from '../../../support/scratch.ts';

let daemon: LocalDaemon;
let folder: string;
let state_dir: string;

beforeEach(async () => {
  folder = scratchFolder();
  chmodSync(folder, 0o755);
  daemon = await LocalDaemon.start('--webhook-url', DOWN_URL, '--watch-dir', folder);
  state_dir = daemon.daemon.config.state_dir;
});

const at = (path: string, more = '') => `/files?path=${encodeURIComponent(path)}${more}`;
const put = (path: string, body: string | Uint8Array, headers = {}, more = '') =>
  daemon.ask(at(path, more), { method: 'PUT', body, headers });
const remove = (path: string, more = '') => daemon.ask(at(path, more), { method: 'DELETE' });
const both = (verb: 'move' | 'copy', source: string, destination: string, more = {}) =>
  daemon.ask(`/files/${verb}`, { json: { source, destination, ...more } });
const outcome = ({ status, error }: Awaited<ReturnType<typeof put>>) => [status, error?.code];

/** An upload whose client sends what it likes. */
function upload(path: string, headers: Record<string, string> = {}) {
  const sent = request(`${daemon.url}${at(path)}`, {
    method: 'PUT',
    headers: { ...daemon.authorization, ...headers },
    agent: false,
  });
  sent.on('error', () => {});
  return sent;
}

const leftovers = () =>
  readdirSync(folder, { recursive: true }).filter((name) => String(name).includes('.sandboxd-'));

describe('PUT and POST /files', () => {
  it('make and replace a file of any type and size, with missing directories', async () => {
    const path = join(folder, 'new/ü/file');
    const made = await put(path, Buffer.alloc(5_000_000, 'x'), { 'content-type': 'application/json' });
    expect([made.status, made.data]).toEqual([
      200,
      { written: true, path, size: 5_000_000, etag: expect.any(String) },
    ]);
    const again = await daemon.ask(at(path), { method: 'POST', body: 'short' });
    expect([again.status, again.data.size]).toEqual([200, 5]);
    expect(again.data.etag).not.toBe(made.data.etag);
    expect(readFileSync(path, 'utf8')).toBe('short');
    const read = await daemon.ask(at(path));
    expect(read.headers.get('etag')).toBe(again.data.etag);
    expect(outcome(await put(join(folder, 'none/file'), '', {}, '&parents=false'))).toEqual([
      404,
      'not_found',
    ]);
    expect((await put(join(folder, 'empty'), '')).data.size).toBe(0);
    expect(leftovers()).toEqual([]);
  });

  it('keep mode and owner of a replaced file, and follow links to it', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, 'old');
    chmodSync(file, 0o751);
    if (IS_ROOT) chownSync(file, 12345, 54321);
    symlinkSync('file', join(folder, 'link'));
    symlinkSync(join(folder, 'later'), join(folder, 'dangling'));
    expect((await put(join(folder, 'link'), 'new')).status).toBe(200);
    const { mode, uid, gid } = statSync(file);
    expect([readFileSync(file, 'utf8'), mode & 0o7777]).toEqual(['new', 0o751]);
    if (IS_ROOT) expect([uid, gid]).toEqual([12345, 54321]);
    expect(readlinkSync(join(folder, 'link'))).toBe('file');
    expect((await put(join(folder, 'dangling'), 'made', {}, '&mode=0600')).status).toBe(200);
    expect(statSync(join(folder, 'later')).mode & 0o7777).toBe(0o600);
    expect((await put(join(folder, 'plain'), '')).status).toBe(200);
    expect(statSync(join(folder, 'plain')).mode & 0o7777).toBe(0o644);
  });

  it('write only where the conditions hold', async () => {
    const file = join(folder, 'file');
    const { etag } = (await put(file, 'one', { 'if-none-match': '*' })).data;
    expect(outcome(await put(file, 'two', { 'if-none-match': '*' }))).toEqual([412, 'precondition_failed']);
    expect((await put(file, 'two', { 'if-match': etag })).status).toBe(200);
    expect(outcome(await put(file, 'three', { 'if-match': etag }))).toEqual([412, 'precondition_failed']);
    expect(outcome(await put(join(folder, 'none'), '', { 'if-match': '*' }))).toEqual([
      412,
      'precondition_failed',
    ]);
    expect((await put(file, '', { 'if-none-match': '"x"' })).error.details?.field).toBe('If-None-Match');
    const racing = await Promise.all(
      Array.from({ length: 8 }, (_, i) => put(join(folder, 'race'), String(i), { 'if-none-match': '*' })),
    );
    expect(racing.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(412)]);
    expect(readFileSync(file, 'utf8')).toBe('two');
    expect(leftovers()).toEqual([]);
  });

  it('with one tag at once succeed once, by whatever path', async () => {
    const file = join(folder, 'file');
    mkdirSync(join(folder, 'd'));
    symlinkSync('../file', join(folder, 'd/link'));
    symlinkSync('.', join(folder, 'here'));
    const paths = [file, join(folder, 'd/link'), join(folder, 'here/file'), `${folder}/d/../file`];
    for (let round = 0; round < 3; round++) {
      const { etag } = (await put(file, `old ${round}`)).data as { etag: string };
      const racing = await Promise.all(
        Array.from({ length: 8 }, (_, i) => put(paths[i % 4] as string, `${i}`, { 'if-match': etag })),
      );
      expect(racing.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(412)]);
      expect(readFileSync(file, 'utf8')).toBe(String(racing.findIndex(({ status }) => status === 200)));
    }
    expect(leftovers()).toEqual([]);
  });

  it('leave nothing of an upload that breaks off, and nothing is seen of it meanwhile', async () => {
    writeFileSync(join(folder, 'file'), 'old');
    const sent = upload(join(folder, 'file'), { 'content-length': '1000000' });
    const second = upload(join(folder, 'a/b/file'));
    sent.write(Buffer.alloc(500_000));
    second.write('some');
    await eventually(() => expect(leftovers()).toHaveLength(2));
    expect((await daemon.ask(`/files/list?path=${folder}`)).data.entries).toHaveLength(1);
    sent.destroy();
    second.destroy();
    await eventually(() => expect(readdirSync(folder)).toEqual(['file']));
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('old');
    await eventually(() => expect(readdirSync(join(state_dir, 'files/uploads'))).toEqual([]));
  });

  it('refuse what is no file, before its body is read', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    expect(outcome(await put(folder, 'x'))).toEqual([409, 'is_a_directory']);
    expect(outcome(await put(`${folder}/new/`, 'x'))).toEqual([409, 'is_a_directory']);
    expect(outcome(await put(join(folder, 'pipe'), 'x'))).toEqual([409, 'not_a_file']);
    expect(outcome(await put('/etc/passwd/x', 'x'))).toEqual([409, 'not_a_directory']);
    expect((await put(join(folder, 'f'), '', {}, '&mode=999')).error.details?.field).toBe('mode');
    const answered = new Promise<number | undefined>((resolve) => {
      const sent = upload(join(folder, 'pipe'), { 'content-length': '1000000000' });
      sent.on('response', ({ statusCode }) => resolve(statusCode));
      sent.write('x');
    });
    expect(await answered).toBe(409);
  });

  it.runIf(IS_ROOT)('answer 507 on a full disk and keep the old file whole', async () => {
    const disk = join(scratchFolder(), 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
    try {
      writeFileSync(join(disk, 'file'), 'old');
      expect(outcome(await put(join(disk, 'file'), Buffer.alloc(3_000_000)))).toEqual([507, 'no_space']);
      expect(readFileSync(join(disk, 'file'), 'utf8')).toBe('old');
      expect(readdirSync(disk)).toEqual(['file']);
      expect((await put(join(disk, 'file'), 'fits')).status).toBe(200);
      await both('move', join(disk, 'file'), join(folder, 'moved'));
      expect([readFileSync(join(folder, 'moved'), 'utf8'), readdirSync(disk)]).toEqual(['fits', []]);
      expect(outcome(await remove(disk))).toEqual([409, 'conflict']);
      expect(outcome(await remove(dirname(disk), '&recursive=true'))).toEqual([409, 'conflict']);
    } finally {
      execFileSync('umount', [disk]);
    }
  });

  it('are one create or write to the watch, which never tells of the temporary file', async () => {
    const file = join(folder, 'file');
    await put(file, 'one');
    await eventually(async () => expect(await daemon.events('file.modified')).toHaveLength(1));
    await put(file, 'two');
    await eventually(async () => {
      expect(await daemon.events('file.modified')).toEqual([
        { event_type: 'create', path: file, is_directory: false },
        { event_type: 'write', path: file, is_directory: false },
      ]);
    });
  });
});

describe('a start', () => {
  it('removes what a killed daemon has left of uploads, and nothing else', async () => {
    const state = join(scratchFolder(), 'state');
    const journal = join(state, 'files/uploads');
    mkdirSync(journal, { recursive: true, mode: 0o700 });
    chmodSync(state, 0o700);
    const [file, tree, other] = ['a', 'b', 'c'].map((digit) => digit.repeat(24)) as [string, string, string];
    writeFileSync(join(folder, temporaryName(file)), 'half');
    mkdirSync(join(folder, temporaryName(tree), 'sub'), { recursive: true });
    writeFileSync(join(folder, temporaryName(tree), 'sub/file'), 'half');
    writeFileSync(join(folder, 'precious'), 'whole');
    for (const id of [file, tree]) symlinkSync(join(folder, temporaryName(id)), join(journal, id));
    symlinkSync(join(folder, 'precious'), join(journal, other));
    symlinkSync(join(folder, 'gone', temporaryName(other)), join(journal, 'd'.repeat(24)));
    const again = createDaemon(state);
    await again.start();
    onTestFinished(() => again.stop('signal', 'SIGTERM'));
    await eventually(() => {
      const left = readdirSync(join(state, 'files')).filter((name) => name.startsWith('left-'));
      expect([readdirSync(folder), readdirSync(journal), left]).toEqual([['precious'], [], []]);
    });
  });
});

describe('mkdir, DELETE, move and copy', () => {
  it('make directories, once or with those above', async () => {
    const make = async (path: string, more = '') => {
      const { status, data, error } = await daemon.ask(at(path, `&mkdir=true${more}`), { method: 'POST' });
      return [status, data?.created ?? error.code];
    };
    expect(await make(join(folder, 'a'))).toEqual([201, true]);
    expect(await make(join(folder, 'a'))).toEqual([409, 'already_exists']);
    expect(await make(join(folder, 'a'), '&recursive=true')).toEqual([201, false]);
    expect(await make(join(folder, 'b/c'))).toEqual([404, 'not_found']);
    expect(await make(join(folder, 'b/c'), '&recursive=true')).toEqual([201, true]);
    writeFileSync(join(folder, 'file'), '');
    expect(await make(join(folder, 'file'), '&recursive=true')).toEqual([409, 'already_exists']);
    expect(await make('/')).toEqual([409, 'already_exists']);
  });

  it('remove files, links themselves, and directories', async () => {
    mkdirSync(join(folder, 'dir/sub'), { recursive: true });
    writeFileSync(join(folder, 'dir/sub/file'), '');
    mkdirSync(join(folder, 'kept'));
    writeFileSync(join(folder, 'kept/file'), '');
    symlinkSync('../kept', join(folder, 'dir/link'));
    symlinkSync('kept', join(folder, 'link'));
    expect((await remove(join(folder, 'link'))).data).toEqual({ deleted: true });
    expect(outcome(await remove(join(folder, 'dir')))).toEqual([409, 'directory_not_empty']);
    expect((await remove(join(folder, 'dir'), '&recursive=true')).status).toBe(200);
    expect(outcome(await remove(join(folder, 'dir')))).toEqual([404, 'not_found']);
    expect(outcome(await remove('/', '&recursive=true'))).toEqual([409, 'conflict']);
    expect(outcome(await remove('/proc', '&recursive=true'))).toEqual([409, 'conflict']);
    expect(outcome(await remove(`${folder}/.`))).toEqual([400, 'invalid_request']);
    expect([readdirSync(folder), readdirSync(join(folder, 'kept'))]).toEqual([['kept'], ['file']]);
  });

  it('move and copy whole trees, and overwrite only what they may', async () => {
    mkdirSync(join(folder, 'dir/sub'), { recursive: true });
    writeFileSync(join(folder, 'dir/sub/run'), '#!');
    chmodSync(join(folder, 'dir/sub/run'), 0o755);
    symlinkSync('sub/run', join(folder, 'dir/link'));
    writeFileSync(join(folder, 'file'), 'one');
    expect((await both('copy', join(folder, 'dir'), join(folder, 'copy'))).data).toEqual({ copied: true });
    expect(statSync(join(folder, 'copy/sub/run')).mode & 0o777).toBe(0o755);
    expect(readlinkSync(join(folder, 'copy/link'))).toBe('sub/run');
    expect((await both('move', join(folder, 'dir'), join(folder, 'copy/moved'))).data).toEqual({
      moved: true,
    });
    expect(existsSync(join(folder, 'dir'))).toBe(false);
    expect(readFileSync(join(folder, 'copy/moved/sub/run'), 'utf8')).toBe('#!');
    await both('copy', join(folder, 'file'), join(folder, 'two'));
    writeFileSync(join(folder, 'file'), 'new');
    for (const verb of ['copy', 'move'] as const) {
      expect(outcome(await both(verb, join(folder, 'file'), join(folder, 'two')))).toEqual([
        409,
        'already_exists',
      ]);
      expect(outcome(await both(verb, join(folder, 'none'), join(folder, 'x')))).toEqual([404, 'not_found']);
      expect(outcome(await both(verb, join(folder, 'file'), join(folder, 'no/x')))).toEqual([
        404,
        'not_found',
      ]);
      expect((await both(verb, join(folder, 'copy'), join(folder, 'copy/in'))).error.details?.field).toBe(
        'destination',
      );
      expect((await both(verb, 'relative', '/x')).error.details?.field).toBe('source');
      expect(
        outcome(await both(verb, join(folder, 'file'), join(folder, 'copy'), { overwrite: true })),
      ).toEqual([409, 'is_a_directory']);
      expect((await both(verb, join(folder, 'file'), join(folder, 'two'), { overwrite: true })).status).toBe(
        200,
      );
      expect(readFileSync(join(folder, 'two'), 'utf8')).toBe('new');
    }
    expect(readdirSync(folder).sort()).toEqual(['copy', 'two']);
  });

  it('keep the daemon itself out of it', async () => {
    const token = join(state_dir, 'control-token');
    symlinkSync(state_dir, join(folder, 'link'));
    writeFileSync(join(folder, 'file'), '');
    const above = dirname(state_dir);
    const refused = [
      put(token, 'x'),
      put(join(folder, 'link/new'), 'x'),
      remove(token),
      remove(state_dir, '&recursive=true'),
      remove(above, '&recursive=true'),
      both('move', above, join(folder, 'x')),
      both('move', state_dir, join(folder, 'x')),
      both('copy', state_dir, join(folder, 'x')),
      both('copy', token, join(folder, 'x')),
      both('move', join(folder, 'file'), join(folder, 'link/file')),
      both('move', join(folder, 'file'), token, { overwrite: true }),
      daemon.ask(at(join(folder, 'link/dir'), '&mkdir=true'), { method: 'POST' }),
    ];
    for (const each of refused) expect(outcome(await each)).toEqual([403, 'forbidden']);
    await both('copy', above, join(folder, 'copy'));
    expect([readdirSync(join(folder, 'copy')), lstatSync(token).isFile()]).toEqual([[], true]);
  });

  it('are refused while the sandbox is paused; reading works', async () => {
    writeFileSync(join(folder, 'file'), 'read');
    await daemon.ask('/sandbox/pause', { json: {} });
    for (const each of [
      put(join(folder, 'file'), 'x'),
      remove(join(folder, 'file')),
      both('move', join(folder, 'file'), join(folder, 'x')),
      daemon.ask(at(join(folder, 'd'), '&mkdir=true'), { method: 'POST' }),
    ])
      expect(outcome(await each)).toEqual([409, 'conflict']);
    expect((await daemon.ask(at(join(folder, 'file')))).text).toBe('read');
  });
});

describe.runIf(IS_ROOT)('with user', () => {
  it('what a request makes belongs to that account, and it can do no more than the account', async () => {
    const as = '&user=nobody';
    const home = join(folder, 'home');
    mkdirSync(home);
    chownSync(home, 65534, 65534);
    expect((await put(join(home, 'a/file'), 'mine', {}, as)).status).toBe(200);
    for (const path of ['a', 'a/file']) expect(statSync(join(home, path)).uid).toBe(65534);
    expect(outcome(await put(join(folder, 'file'), '', {}, as))).toEqual([403, 'permission_denied']);
    expect(outcome(await remove(join(folder, 'home'), `&recursive=true${as}`))).toEqual([
      403,
      'permission_denied',
    ]);
    writeFileSync(join(home, 'roots'), 'old');
    expect(outcome(await put(join(home, 'roots'), 'x', {}, as))).toEqual([403, 'permission_denied']);
    renameSync(join(home, 'roots'), join(folder, 'roots'));
    symlinkSync(join(folder, 'roots'), join(home, 'link'));
    expect(outcome(await put(join(home, 'link'), 'x', {}, as))).toEqual([403, 'permission_denied']);
    await daemon.ask('/files/move?user=nobody', {
      json: { source: join(home, 'a'), destination: join(home, 'b') },
    });
    expect(existsSync(join(home, 'b/file'))).toBe(true);
    expect(readFileSync(join(folder, 'roots'), 'utf8')).toBe('old');
  });
});
