import { readFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { DOWN_URL, LocalDaemon } from '../../support/daemon/local-daemon.ts';

let daemon: LocalDaemon;

beforeEach(async () => {
  daemon = await LocalDaemon.start('--webhook-url', DOWN_URL);
});

const SLEEP = { command: ['sleep', '1000'] };

describe('POST /processes', () => {
  it('answers 201 with the process, which is listed from then on', async () => {
    const { status, data } = await daemon.ask('/processes', { json: { ...SLEEP, name: 'sleeper' } });
    expect(status).toBe(201);
    expect(data).toEqual({
      process_id: expect.stringMatching(/^proc_/),
      name: 'sleeper',
      pid: expect.any(Number),
      state: 'running',
      command: SLEEP.command,
      command_truncated: false,
      cwd: process.cwd(),
      user: null,
      exit_code: null,
      signal: null,
      timed_out: false,
      started_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      exited_at: null,
      duration_ms: null,
      restart_count: 0,
      ready: null,
      resource_usage: { cpu_ms: 0, memory_bytes: 0, processes: 0 },
    });
    const listed = (await daemon.ask('/processes')).data.processes;
    expect(listed).toMatchObject([{ process_id: data.process_id, resource_usage: { processes: 1 } }]);
    expect((await daemon.ask(`/processes/${data.process_id}`)).data).toMatchObject({ pid: data.pid });
  });

  it('runs a shell command and shows it as its command', async () => {
    const data = await daemon.run({ shell: 'echo $((6 * 7))' }, '?wait_ms=30000');
    expect(data.command).toEqual(['/bin/sh', '-c', 'echo $((6 * 7))']);
    expect(data.output.stdout).toBe('42\n');
  });

  it('starts one process for a process_id, however often and concurrently it is asked', async () => {
    const json = { ...SLEEP, process_id: 'a:1.b-c', env: { A: '1', B: '2' } };
    const again = { env: { B: '2', A: '1' }, process_id: 'a:1.b-c', ...SLEEP };
    const answers = await Promise.all(
      [json, again, json].map((each) => daemon.ask('/processes', { json: each })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
    expect(new Set(answers.map(({ data }) => data.pid)).size).toBe(1);
    const other = await daemon.ask('/processes', { json: { ...json, cwd: '/tmp' } });
    expect([other.status, other.error.details?.field]).toEqual([409, 'process_id']);
    expect((await daemon.ask('/processes')).data.processes).toHaveLength(1);
  });

  it('waits for the end with wait_ms, and answers with the output', async () => {
    const { status, data } = await daemon.ask('/processes?wait_ms=30000', {
      json: { process_id: 'once', shell: 'echo out; echo err >&2; exit 3' },
    });
    expect(status).toBe(201);
    expect(data).toMatchObject({ state: 'exited', exit_code: 3, signal: null });
    const output = { stdout: 'out\n', stderr: 'err\n', stdout_truncated: false, stderr_truncated: false };
    expect(data.output).toEqual(output);
    const again = await daemon.ask('/processes?wait_ms=0', {
      json: { process_id: 'once', shell: 'echo out; echo err >&2; exit 3' },
    });
    expect([again.status, again.data]).toEqual([200, data]);
  });

  it('answers with the process still running when wait_ms is over', async () => {
    const data = await daemon.run({ ...SLEEP, stdin: 'pipe' }, '?wait_ms=1');
    expect(data).toMatchObject({ state: 'running', output: { stdout: '', stdout_truncated: false } });
  });

  it('answers with the last 1 MiB of output, starting with a whole character', async () => {
    const MIB = 1024 * 1024;
    const data = await daemon.run(
      { command: [process.execPath, '-e', `process.stdout.write('é'.repeat(${MIB / 2}) + 'x')`] },
      '?wait_ms=30000',
    );
    expect(data.output.stdout_truncated).toBe(true);
    expect(data.output.stdout === `${'é'.repeat(MIB / 2 - 1)}x`).toBe(true);
  });

  it('is refused while the sandbox is paused, and works again after the resume', async () => {
    await daemon.ask('/sandbox/pause', { json: {} });
    const refused = await daemon.ask('/processes', { json: SLEEP });
    expect([refused.status, refused.error.code]).toEqual([409, 'conflict']);
    await daemon.ask('/sandbox/resume', { json: {} });
    expect((await daemon.ask('/processes', { json: SLEEP })).status).toBe(201);
  });

  it('is refused while the sandbox is stopping', async () => {
    const { data } = await daemon.ask('/processes', {
      json: { shell: 'trap "" TERM; echo up; while :; do sleep 1; done', ready: { log: 'up' } },
    });
    await daemon.ask(`/processes/${data.process_id}/wait?for=ready`);
    const stopped = daemon.daemon.stop('signal', 'SIGTERM');
    const refused = await daemon.ask('/processes', { json: SLEEP });
    expect([refused.status, refused.error.code]).toEqual([503, 'shutting_down']);
    await stopped;
  });
});

describe('GET /processes', () => {
  it('has pages, newest first, as contexts have', async () => {
    for (const process_id of ['a', 'b', 'c'])
      await daemon.ask('/processes', { json: { ...SLEEP, process_id } });
    for (const [path, list, id] of [
      ['/processes', 'processes', 'process_id'],
      ['/contexts', 'contexts', 'id'],
    ] as const) {
      const first = (await daemon.ask(`${path}?limit=2`)).data;
      const rest = (await daemon.ask(`${path}?limit=2&cursor=${first.next_cursor}`)).data;
      const all = (await daemon.ask(`${path}?limit=5000`)).data;
      const ids = [first, rest, all].map((page) =>
        page[list].map((each: Record<string, string>) => each[id]),
      );
      expect(ids).toEqual([['c', 'b'], ['a'], ['c', 'b', 'a']]);
      expect([rest.next_cursor, all.next_cursor]).toEqual([null, null]);
      for (const query of [
        'limit=0',
        'limit=-1',
        'limit=x',
        'limit=',
        'cursor=x',
        'cursor=1-..%2F',
        'cursor=',
      ]) {
        const { status, error } = await daemon.ask(`${path}?${query}`);
        expect([status, error?.code], query).toEqual([400, 'invalid_request']);
      }
    }
  });
});

describe('an invalid start', () => {
  const BAD: [field: string, request: unknown][] = [
    ['body', undefined],
    ['body', []],
    ['command', {}],
    ['command', { command: ['true'], shell: 'true' }],
    ['command', { command: [] }],
    ['command', { command: ['true', 1] }],
    ['command', { command: 'true' }],
    ['command', { command: ['no-such-program'] }],
    ['command', { command: ['/etc/passwd'] }],
    ['command', { command: ['/'] }],
    ['shell', { shell: '' }],
    ['shell', { shell: 7 }],
    ['process_id', { ...SLEEP, process_id: '..' }],
    ['process_id', { ...SLEEP, process_id: 'a/b' }],
    ['process_id', { ...SLEEP, process_id: 'x'.repeat(129) }],
    ['cwd', { ...SLEEP, cwd: '/no/such/folder' }],
    ['cwd', { ...SLEEP, cwd: '/etc/passwd' }],
    ['env', { ...SLEEP, env: { 'A=B': '' } }],
    ['env.A', { ...SLEEP, env: { A: 1 } }],
    ['user', { ...SLEEP, user: 'nobody-of-that-name' }],
    ['name', { ...SLEEP, name: 1 }],
    ['stdin', { ...SLEEP, stdin: 'inherit' }],
    ['timeout_ms', { ...SLEEP, timeout_ms: 0 }],
    ['timeout_ms', { ...SLEEP, timeout_ms: 1.5 }],
    ['restart.policy', { ...SLEEP, restart: {} }],
    ['restart.policy', { ...SLEEP, restart: { policy: 'often' } }],
    ['restart.max_restarts', { ...SLEEP, restart: { policy: 'always', max_restarts: -1 } }],
    ['restart.backoff', { ...SLEEP, restart: { policy: 'always', backoff: 1 } }],
    ['pty.cols', { ...SLEEP, pty: { rows: 24 } }],
    ['pty.rows', { ...SLEEP, pty: { cols: 80, rows: 70_000 } }],
    ['ready', { ...SLEEP, ready: {} }],
    ['ready', { ...SLEEP, ready: { port: 80, log: 'x' } }],
    ['ready.port', { ...SLEEP, ready: { port: 0 } }],
    ['ready.log', { ...SLEEP, ready: { log: '' } }],
    ['comand', { ...SLEEP, comand: [] }],
  ];

  it('is refused by its field, causes no event, and leaves the id free', async () => {
    for (const [field, request] of BAD) {
      const json = request as object | undefined;
      const { status, error } = await daemon.ask('/processes', { method: 'POST', ...(json ? { json } : {}) });
      expect([status, error.code, error.details?.field], JSON.stringify(request)).toEqual([
        400,
        'invalid_request',
        field,
      ]);
    }
    const free = { process_id: 'kept-free' };
    expect((await daemon.ask('/processes', { json: { ...free, command: ['no-such-program'] } })).status).toBe(
      400,
    );
    expect((await daemon.ask('/processes', { json: { ...free, ...SLEEP } })).status).toBe(201);
    expect(await daemon.events('process.started')).toHaveLength(1);
  });

  it('is refused by its field in the query and the body as well', async () => {
    for (const [query, field] of [
      ['?wait_ms=600001', 'wait_ms'],
      ['?wait_ms=-1', 'wait_ms'],
      ['?wait_ms=soon', 'wait_ms'],
      ['?wait_ms=1&wait_ms=2', 'wait_ms'],
      ['?wait=1', 'wait'],
    ]) {
      const { status, error } = await daemon.ask(`/processes${query}`, { json: SLEEP });
      expect([status, error.details?.field]).toEqual([400, field]);
    }
    const broken = await daemon.ask('/processes', {
      body: '{"command":',
      headers: { 'content-type': 'application/json' },
    });
    expect([broken.status, broken.error.details?.field]).toEqual([400, 'body']);
    const text = await daemon.ask('/processes', { body: '{}', headers: { 'content-type': 'text/plain' } });
    expect([text.status, text.error.code]).toEqual([415, 'unsupported_media_type']);
    const large = await daemon.ask('/processes', { json: { command: ['true', 'x'.repeat(1024 * 1024)] } });
    expect([large.status, large.error.code]).toEqual([413, 'payload_too_large']);
    expect(await daemon.events('process.started')).toEqual([]);
  });
});

describe('GET /processes/{id}/wait', () => {
  it('answers with the process when it has ended, and 408 if it does not end in time', async () => {
    const { process_id } = await daemon.run({ command: ['cat'], stdin: 'pipe' });
    const late = await daemon.ask(`/processes/${process_id}/wait?timeout_ms=1`);
    expect([late.status, late.error.code]).toEqual([408, 'timeout']);
    const waiting = daemon.ask(`/processes/${process_id}/wait`);
    await daemon.ask(`/processes/${process_id}/stdin?end=true`, { method: 'POST' });
    expect((await waiting).data).toMatchObject({ state: 'exited', exit_code: 0 });
  });

  it('answers when the process is ready, and 409 if it ended before that', async () => {
    const { process_id } = await daemon.run({
      shell: 'read line; echo listening; exec sleep 1000',
      stdin: 'pipe',
      ready: { log: 'listening' },
    });
    const waiting = daemon.ask(`/processes/${process_id}/wait?for=ready`);
    expect((await daemon.ask(`/processes/${process_id}`)).data.ready).toBe(false);
    await daemon.ask(`/processes/${process_id}/stdin`, { body: 'go\n' });
    expect((await waiting).data).toMatchObject({ state: 'running', ready: true });
    const short = await daemon.run({ command: ['true'], ready: { log: 'never' } });
    const refused = await daemon.ask(`/processes/${short.process_id}/wait?for=ready`);
    expect([refused.status, refused.error.code]).toEqual([409, 'conflict']);
  });
});

describe('POST /processes/{id}/signal, …/resize and DELETE', () => {
  it('signals the whole group, or only the leader', async () => {
    const shell =
      'trap "echo parent" USR1; sh -c \'trap "echo child" USR1; echo up; while :; do sleep 0.05; done\' & while :; do wait; done';
    const { process_id } = await daemon.run({ shell, ready: { log: 'up' } });
    await daemon.ask(`/processes/${process_id}/wait?for=ready`);
    const send = (json: object) => daemon.ask(`/processes/${process_id}/signal`, { json });
    expect(await send({ signal: 'SIGUSR1', scope: 'leader' })).toMatchObject({ status: 204, text: '' });
    await untilOutput(process_id, (text) => text === 'up\nparent\n');
    expect((await send({ signal: 'USR1' })).status).toBe(204);
    await untilOutput(process_id, (text) => text.includes('child') && text.split('parent').length === 3);
    await send({ signal: 'SIGKILL' });
    expect(await daemon.ended(process_id)).toMatchObject({
      state: 'exited',
      exit_code: 137,
      signal: 'SIGKILL',
    });
    const late = await send({ signal: 'SIGTERM' });
    expect([late.status, late.error.code]).toEqual([409, 'conflict']);
  });

  it('changes the size of a terminal', async () => {
    const { process_id } = await daemon.run({
      shell: 'trap "stty size" WINCH; echo up; while :; do sleep 0.05; done',
      pty: { cols: 80, rows: 24 },
      ready: { log: 'up' },
    });
    await daemon.ask(`/processes/${process_id}/wait?for=ready`);
    const { status } = await daemon.ask(`/processes/${process_id}/resize`, { json: { cols: 100, rows: 30 } });
    expect(status).toBe(204);
    await untilOutput(process_id, (text) => text.includes('30 100'));
  });

  it('kills a process that ignores SIGTERM after grace_ms, with everything it started', async () => {
    const shell = 'trap "" TERM; sleep 1000 & echo $!; while :; do wait; done';
    const { process_id } = await daemon.run({ shell, ready: { log: '\n' } });
    await daemon.ask(`/processes/${process_id}/wait?for=ready`);
    const { status, data } = await daemon.ask(`/processes/${process_id}?grace_ms=1`, { method: 'DELETE' });
    expect([status, data.state, data.exit_code, data.signal]).toEqual([200, 'exited', 137, 'SIGKILL']);
    const grandchild = (await daemon.output(process_id)).toString().trim();
    await expect(readFile(`/proc/${grandchild}/cmdline`, 'utf8').catch(() => '')).resolves.toBe('');
    expect((await daemon.ask(`/processes/${process_id}`, { method: 'DELETE' })).data).toEqual(data);
  });

  it('refuses an invalid request by its field', async () => {
    const { process_id } = await daemon.run({ ...SLEEP, process_id: 'p' });
    const bad: [string, object | undefined, string][] = [
      ['signal', undefined, 'body'],
      ['signal', {}, 'signal'],
      ['signal', { signal: 'SIGNONE' }, 'signal'],
      ['signal', { signal: 9 }, 'signal'],
      ['signal', { signal: 'SIGHUP', scope: 'all' }, 'scope'],
      ['signal', { signal: 'SIGHUP', to: 'me' }, 'to'],
      ['resize', { cols: 80 }, 'rows'],
      ['resize', { cols: 0, rows: 24 }, 'cols'],
      ['resize', { cols: 80, rows: 24, depth: 1 }, 'depth'],
      ['resize?force=1', { cols: 80, rows: 24 }, 'force'],
    ];
    for (const [path, json, field] of bad) {
      const asked = { method: 'POST', ...(json ? { json } : {}) };
      const { status, error } = await daemon.ask(`/processes/${process_id}/${path}`, asked);
      expect([status, error.details?.field], path).toEqual([400, field]);
    }
    for (const [method, path, field] of [
      ['GET', '/processes?state=running', 'state'],
      ['GET', '/processes/p?verbose=1', 'verbose'],
      ['GET', '/processes/p/wait?for=ever', 'for'],
      ['GET', '/processes/p/wait?timeout_ms=1s', 'timeout_ms'],
      ['DELETE', '/processes/p?grace_ms=x', 'grace_ms'],
    ] as const) {
      const { status, error } = await daemon.ask(path, { method });
      expect([status, error.details?.field], path).toEqual([400, field]);
    }
    const resize = await daemon.ask('/processes/p/resize', { json: { cols: 80, rows: 24 } });
    expect([resize.status, resize.error.code]).toEqual([409, 'conflict']);
  });
});

describe('every route', () => {
  const ROUTES: [method: string, path: string, json?: object][] = [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/output'],
    ['GET', '/wait'],
    ['POST', '/stdin'],
    ['POST', '/signal', { signal: 'SIGHUP' }],
    ['POST', '/resize', { cols: 1, rows: 1 }],
  ];

  it('answers 404 for an unknown process, 401 without the token and 405 for another method', async () => {
    for (const [method, path, json] of ROUTES) {
      const asked = { method, ...(json ? { json } : {}) };
      const missing = await daemon.ask(`/processes/none${path}`, asked);
      expect([missing.status, missing.error.code], path).toEqual([404, 'not_found']);
      const strange = await daemon.ask(`/processes/none${path}`, {
        ...asked,
        headers: { authorization: '' },
      });
      expect([strange.status, strange.error.code], path).toEqual([401, 'unauthorized']);
      const other = await daemon.ask(`/processes/none${path}`, { method: 'PATCH', body: 'x' });
      expect([other.status, other.error.code], path).toEqual([405, 'method_not_allowed']);
    }
  });

  it('answers 409 before the sandbox is initialised', async () => {
    const waiting = await LocalDaemon.start('--await-init');
    expect((await waiting.ask('/processes')).error.code).toBe('conflict');
    expect((await waiting.ask('/processes', { json: SLEEP })).error.code).toBe('conflict');
  });
});

/** Follows stdout until it is as it should be. */
async function untilOutput(process_id: string, is_complete: (text: string) => boolean): Promise<void> {
  const reading = new AbortController();
  const response = await fetch(`${daemon.url}/processes/${process_id}/output?stream=stdout&follow=true`, {
    headers: { ...daemon.authorization, accept: 'application/octet-stream' },
    signal: reading.signal,
  });
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (is_complete(text)) break;
  }
  reading.abort();
  expect(is_complete(text), text).toBe(true);
}
