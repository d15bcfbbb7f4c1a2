import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../support/ctl/sandboxctl.ts';
import { refuse, StandInDaemon, succeed } from '../support/ctl/stand-in-daemon.ts';

const daemon = new StandInDaemon();
const folder = mkdtempSync(join(tmpdir(), 'sandboxctl-'));
let env: NodeJS.ProcessEnv;

beforeAll(async () => {
  env = { SANDBOXD_URL: await daemon.start(), SANDBOXD_STATE_DIR: folder };
  daemon.on('POST /webhook/publish', (_, response) => {
    succeed(response, 202, { event_id: 'evt_1', sequence: 7 });
  });
});

afterAll(async () => {
  await daemon.stop();
  rmSync(folder, { recursive: true });
});

const VERBATIM =
  '{ "price": 1.10, "huge": 12345678901234567890, "beyond": 1e400,\n "text": "Grüße 🌍\\u00e9" }';

describe('sandboxctl publish', () => {
  it('sends the JSON text as it is, and needs no token', async () => {
    expect(await run(['publish', VERBATIM], env)).toEqual({ code: 0, stdout: '#7 evt_1\n', stderr: '' });
    expect(daemon.received.at(-1)).toMatchObject({
      method: 'POST',
      url: '/api/v1/webhook/publish',
      body: `{"payload":${VERBATIM}}`,
    });
    const headers = daemon.received.at(-1)?.headers;
    expect(headers).toMatchObject({ 'content-type': 'application/json' });
    expect(headers).not.toHaveProperty('authorization');
    expect(headers).not.toHaveProperty('idempotency-key');
  });

  it('reads the JSON text from stdin where it is -', async () => {
    expect(await run(['publish', '-'], env, VERBATIM)).toMatchObject({ code: 0 });
    expect(daemon.received.at(-1)?.body).toBe(`{"payload":${VERBATIM}}`);
  });

  it('passes the idempotency key on and prints JSON for a script', async () => {
    const ended = await run(['publish', '{}', '--idempotency-key', 'step 1', '--json'], env);
    expect(ended).toEqual({ code: 0, stdout: '{"event_id":"evt_1","sequence":7}\n', stderr: '' });
    expect(daemon.received.at(-1)?.headers['idempotency-key']).toBe('step 1');
  });

  it.each([
    ['{', 'the payload is not JSON'],
    ['{},"x":1', 'the payload is not JSON'],
    ['[1]', 'the payload must be a JSON object'],
    ['null', 'the payload must be a JSON object'],
    ['7', 'the payload must be a JSON object'],
  ])('refuses %j without asking the daemon', async (json, message) => {
    const asked = daemon.received.length;
    const { code, stderr } = await run(['publish', json], env);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(new RegExp(`^sandboxctl: ${message}[^\n]*\n$`)),
    ]);
    expect(daemon.received).toHaveLength(asked);
  });

  it.each([
    ['is larger than 1 MiB', Buffer.alloc(2 * 1024 * 1024, 'x')],
    ['is not UTF-8', Buffer.from('7b2261223a22ff227d', 'hex')],
  ])('refuses a payload on stdin that %s', async (message, stdin) => {
    const ended = await run(['publish', '-'], env, stdin);
    expect(ended).toEqual({ code: 2, stdout: '', stderr: `sandboxctl: the payload ${message}\n` });
  });

  it('tells what the daemon refuses, and when to come back', async () => {
    daemon.on('POST /webhook/publish', (_, response) => {
      refuse(response, 503, 'outbox_full', 'The outbox is full.', { 'retry-after': '2' });
    });
    const ended = await run(['publish', '{}'], env);
    expect(ended).toEqual({
      code: 1,
      stdout: '',
      stderr: 'sandboxctl: The outbox is full. (outbox_full); try again in 2 s\n',
    });
  });
});

describe('the control token', () => {
  it('goes with every request where there is one', async () => {
    writeFileSync(join(folder, 'control-token'), 'a-token\n');
    await run(['status'], env);
    expect(daemon.received.at(-1)?.headers.authorization).toBe('Bearer a-token');
  });

  it('is asked for where it is needed and missing', async () => {
    rmSync(join(folder, 'control-token'));
    daemon.on('GET /sandbox', (_, response) => {
      refuse(response, 401, 'unauthorized', 'A valid control token is required.');
    });
    const { code, stderr } = await run(['status'], env);
    expect(code).toBe(1);
    expect(stderr).toBe(
      'sandboxctl: A valid control token is required. (unauthorized); ' +
        `cannot read ${folder}/control-token: no such file; name another file with --token-file\n`,
    );
  });
});
