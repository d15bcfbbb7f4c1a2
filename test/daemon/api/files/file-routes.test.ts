import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { LocalDaemon } from '../../../support/daemon/local-daemon.ts';
import { IS_ROOT } from '../../../support/rights.ts';
import { scratchFolder } from '../../../support/scratch.ts';

let daemon: LocalDaemon;
let folder: string;
let state_dir: string;

beforeEach(async () => {
  daemon = await LocalDaemon.start();
  state_dir = daemon.daemon.config.state_dir;
  folder = scratchFolder();
  chmodSync(folder, 0o755);
});

const at = (path: string, more = '') => `path=${encodeURIComponent(path)}${more}`;
const get = (path: string, headers = {}, more = '') => daemon.ask(`/files?${at(path, more)}`, { headers });
const stat = (path: string, more = '') => daemon.ask(`/files/stat?${at(path, more)}`);
const list = (path: string, more = '') => daemon.ask(`/files/list?${at(path, more)}`);

describe('GET /files', () => {
  it('sends the bytes with their length, tag and time; HEAD sends the same head', async () => {
    const file = join(folder, 'a b%ü.txt');
    writeFileSync(file, 'hello\n');
    utimesSync(file, 1_000_000, 1_000_000);
    const { status, text, headers } = await get(file);
    expect([status, text]).toEqual([200, 'hello\n']);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-length': '6',
      'accept-ranges': 'bytes',
      'last-modified': 'Mon, 12 Jan 1970 13:46:40 GMT',
      etag: expect.stringMatching(/^"[a-z0-9-]+"$/),
      'x-request-id': expect.any(String),
    });
    const head = await daemon.ask(`/files?${at(file)}`, { method: 'HEAD' });
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', '6']);
    expect(head.headers.get('etag')).toBe(headers.get('etag'));
  });

  it('sends ranges and conditions as HTTP says', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '0123456789');
    const etag = (await get(file)).headers.get('etag') ?? '';
    const part = await get(file, { range: 'bytes=3-5' });
    expect([part.status, part.text, part.headers.get('content-range')]).toEqual([206, '345', 'bytes 3-5/10']);
    expect((await get(file, { range: 'bytes=-2', 'if-range': etag })).text).toBe('89');
    const other = await get(file, { range: 'bytes=3-5', 'if-range': '"other"' });
    expect([other.status, other.text]).toEqual([200, '0123456789']);
    const beyond = await get(file, { range: 'bytes=10-' });
    expect([beyond.status, beyond.error.code, beyond.headers.get('content-range')]).toEqual([
      416,
      'range_not_satisfiable',
      'bytes */10',
    ]);
    const known = await get(file, { 'if-none-match': `"x", ${etag}` });
    expect([known.status, known.text, known.headers.get('etag')]).toEqual([304, '', etag]);
    expect((await get(file, { 'if-match': '"x"' })).error.code).toBe('precondition_failed');
  });

  it('gives each content another tag, also one of the same length written at once', async () => {
    const file = join(folder, 'file');
    const tags = new Set<string | null>();
    for (let i = 0; i < 20; i++) {
      writeFileSync(file, String(i % 10));
      tags.add((await get(file)).headers.get('etag'));
    }
    expect(tags.size).toBe(20);
  });

  it('streams large files whole, and files whose content the kernel makes', async () => {
    const file = join(folder, 'large');
    const content = Buffer.alloc(3_000_001, 'some bytes ');
    writeFileSync(file, content);
    const response = await fetch(`${daemon.url}/files?${at(file)}`, { headers: daemon.authorization });
    expect(Buffer.from(await response.arrayBuffer()).equals(content)).toBe(true);
    expect((await get('/proc/version')).text).toBe(readFileSync('/proc/version', 'utf8'));
  });

  it('breaks the connection where a file shrinks meanwhile', async () => {
    const file = join(folder, 'large');
    writeFileSync(file, Buffer.alloc(50_000_000));
    const received = new Promise<number>((resolve, reject) => {
      const sent = request(`${daemon.url}/files?${at(file)}`, { headers: daemon.authorization });
      sent.on('response', (response) => {
        let bytes = 0;
        truncateSync(file, 1_000);
        response.on('data', (data) => {
          bytes += data.length;
        });
        response.on('error', () => resolve(bytes)).on('end', () => reject(new Error('it was complete')));
      });
      sent.end();
    });
    expect(await received).toBeLessThan(50_000_000);
  });

  it('names what is wrong with a path', async () => {
    const wrong: [query: string, message: RegExp][] = [
      ['', /^path: is required/],
      ['path=', /^path: must not be empty/],
      ['path=etc', /^path: must be absolute/],
      ['path=/a%00b', /^path: must not contain NUL/],
      ['path=/%ff', /^path: must be UTF-8/],
      [`path=/${'a'.repeat(256)}`, /^path: must not contain a name of more than 255 bytes/],
      [`path=${'/a'.repeat(2_100)}`, /^path: must be at most 4095 bytes/],
      ['path_base64=Lw', /^path_base64: must be base64/],
      ['path=/a&path_base64=Lw==', /^path_base64: is not accepted together with path/],
      ['path=/etc&user=nobody-here', /^user: there is no user "nobody-here"/],
      ['path=/etc&x=1', /^x: unknown query parameter/],
    ];
    for (const [query, message] of wrong) {
      const { status, error } = await daemon.ask(`/files?${query}`);
      expect([status, error.code], query).toEqual([400, 'invalid_request']);
      expect(error.message).toMatch(message);
    }
  });

  it('opens neither pipes nor devices, and tells directories and missing files apart', async () => {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    symlinkSync(join(folder, 'pipe'), join(folder, 'to-pipe'));
    symlinkSync('round', join(folder, 'round'));
    const codes = async (path: string) => {
      const { status, error } = await get(path);
      return [status, error.code];
    };
    expect(await codes(join(folder, 'to-pipe'))).toEqual([409, 'not_a_file']);
    expect(await codes('/dev/null')).toEqual([409, 'not_a_file']);
    expect(await codes(folder)).toEqual([409, 'is_a_directory']);
    expect(await codes(join(folder, 'none'))).toEqual([404, 'not_found']);
    expect(await codes('/etc/passwd/x')).toEqual([409, 'not_a_directory']);
    expect(await codes(join(folder, 'round'))).toEqual([400, 'invalid_request']);
  });
});

describe('the daemon itself', () => {
  it('is out of reach by its path, by links, by other names and by the process table', async () => {
    const token = join(state_dir, 'control-token');
    symlinkSync(token, join(folder, 'link'));
    symlinkSync(state_dir, join(folder, 'dir'));
    linkSync(token, join(folder, 'name'));
    const paths = [
      token,
      `${state_dir}/../state/control-token`,
      join(folder, 'link'),
      join(folder, 'dir/control-token'),
      join(folder, 'name'),
      `/proc/self/root${token}`,
      `/proc/${process.pid}/cwd/../../../../../..${token}`,
      `/proc/self/mem`,
      `/proc/${process.pid}/environ`,
      `/proc/${process.pid}/task/${process.pid}/maps`,
      '/proc/thread-self/maps',
    ];
    for (const path of paths) expect([path, (await get(path)).error?.code]).toEqual([path, 'forbidden']);
    for (const path of [state_dir, join(folder, 'dir'), '/proc/self/fd'])
      expect([path, (await list(path)).error?.code]).toEqual([path, 'forbidden']);
    for (const path of [state_dir, token, join(folder, 'link'), join(folder, 'dir')])
      expect([path, (await stat(path)).error?.code]).toEqual([path, 'forbidden']);
    const { entries } = (await list(dirname(state_dir))).data;
    expect(entries).toEqual([]);
  });

  it.runIf(IS_ROOT)('is out of reach by the mounts that another process has made for itself', async () => {
    const script = 'mount --bind "$0" "$1" && echo mounted && exec sleep 60';
    const other = spawn('unshare', ['--mount', 'sh', '-c', script, state_dir, folder]);
    onTestFinished(() => void other.kill('SIGKILL'));
    await once(other.stdout, 'data');
    const seen = `/proc/${other.pid}/root${folder}`;
    expect(existsSync(`${seen}/outbox.db`)).toBe(true);
    symlinkSync(seen, join(dirname(state_dir), 'swapped'));
    const swapped = join(dirname(state_dir), 'swapped');
    for (const path of [`${seen}/outbox.db`, `${swapped}/outbox.db`, `${seen}/processes`])
      expect([path, (await get(path)).error?.code]).toEqual([path, 'forbidden']);
    const upload = await daemon.ask(`/files?${at(`${swapped}/processes/planted`)}`, { body: 'x' });
    expect([upload.error.code, existsSync(join(state_dir, 'processes/planted'))]).toEqual([
      'forbidden',
      false,
    ]);
  });
});

describe('GET /files/stat and /files/list', () => {
  it('describe files, directories and links', async () => {
    writeFileSync(join(folder, 'file'), 'four');
    chmodSync(join(folder, 'file'), 0o640);
    symlinkSync('file', join(folder, 'link'));
    symlinkSync('nowhere', join(folder, 'dangling'));
    mkdirSync(join(folder, 'sub'));
    const { data } = await stat(join(folder, 'link'));
    expect(data).toEqual({
      name: 'link',
      path: join(folder, 'link'),
      type: 'file',
      size: 4,
      mode: '0640',
      mod_time: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      is_link: true,
      link_target: 'file',
      uid: process.getuid?.(),
      gid: process.getgid?.(),
      user: IS_ROOT ? 'root' : expect.any(String),
      group: IS_ROOT ? 'root' : expect.any(String),
    });
    expect((await stat('/')).data).toMatchObject({ name: '/', path: '/', type: 'dir', is_link: false });
    expect((await stat('/dev/null')).data).toMatchObject({ type: 'other' });
    const page = (await list(`${folder}/`)).data;
    expect(page).toMatchObject({ path: folder, next_cursor: null });
    expect(
      page.entries.map(({ name, type, is_link }: Record<string, unknown>) => [name, type, is_link]),
    ).toEqual([
      ['dangling', 'symlink', true],
      ['file', 'file', false],
      ['link', 'file', true],
      ['sub', 'dir', false],
    ]);
    expect((await list(join(folder, 'file'))).error.code).toBe('not_a_directory');
    expect((await list(folder, '&cursor=%2A')).error.details?.field).toBe('cursor');
  });

  it('show a name that is not UTF-8 and reach it by its bytes', async () => {
    const path = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff])]);
    writeFileSync(path, 'bytes');
    const [entry] = (await list(folder)).data.entries;
    expect(entry).toMatchObject({ name: 'f�', path: `${folder}/f�`, path_base64: path.toString('base64') });
    const query = `path_base64=${encodeURIComponent(entry.path_base64)}`;
    expect((await daemon.ask(`/files?${query}`)).text).toBe('bytes');
  });
});

describe.runIf(IS_ROOT)('with user', () => {
  it('a request has exactly the rights of that account', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, 'for nobody');
    chmodSync(file, 0o600);
    const as = '&user=nobody';
    expect((await get(file, {}, as)).error).toMatchObject({
      code: 'permission_denied',
      details: { path: file },
    });
    chownSync(file, 65534, 65534);
    expect((await get(file, {}, as)).text).toBe('for nobody');
    expect((await get(file, { range: 'bytes=4-' }, as)).text).toBe('nobody');
    chmodSync(folder, 0o700);
    expect((await stat(file, as)).error.code).toBe('permission_denied');
    expect((await get(join(state_dir, 'control-token'), {}, as)).status).toBe(403);
    expect((await get('/etc/shadow', {}, as)).error.code).toBe('permission_denied');
  });
});
