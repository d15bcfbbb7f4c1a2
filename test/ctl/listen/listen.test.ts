import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { RecentIds } from '../../../src/ctl/listen/listen.ts';
import { SIGNATURE_HEADER, sign } from '../../../src/webhook/signature.ts';
import { type Running, run, start } from '../../support/ctl/sandboxctl.ts';
import { delivery, eventBody } from '../../support/ctl/stand-in-daemon.ts';
import { eventually } from '../../support/eventually.ts';

const SECRET = 'a key made for this test';
const folder = mkdtempSync(join(tmpdir(), 'sandboxctl-'));
const secret_file = join(folder, 'secret');
writeFileSync(secret_file, `${SECRET}\n`);
const running: Running[] = [];

afterEach(() => Promise.all(running.splice(0).map((listener) => listener.ended('SIGKILL'))));
afterAll(() => rmSync(folder, { recursive: true }));

async function listen(...args: string[]): Promise<Running & { url: string }> {
  const listener = start(['listen', '--port', '0', ...args]);
  running.push(listener);
  const [, url = ''] = await listener.wrote(/listening on (http:\S+)\n/);
  return { ...listener, url };
}

async function post(
  url: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<number> {
  return (await fetch(url, { method: 'POST', headers, body })).status;
}

const signed = (body: string) => ({ [SIGNATURE_HEADER]: sign(SECRET, body) });
const VERBATIM = '{ "price": 1.10,\n "huge": 12345678901234567890, "text": "Grüße" }';

describe('sandboxctl listen', () => {
  it('answers 204 to a signed event once it is printed on one line', async () => {
    const { url, stdout, wrote } = await listen('--secret-file', secret_file);
    const body = eventBody(7, VERBATIM);
    expect(await post(url, body, signed(body))).toBe(204);
    await wrote(/evt_.*\n/);
    expect(stdout()).toBe(
      `listening on ${url}\n` +
        `00:00:00.000 #7    agent.event     ${VERBATIM.replace('\n', ' ')} ${delivery(7).event_id}\n`,
    );
  });

  it('answers 401 where the signature is missing or wrong, and prints no such event', async () => {
    const { url, wrote, ended } = await listen('--secret', SECRET);
    const body = eventBody(7);
    expect(await post(url, body)).toBe(401);
    await wrote(/refused with 401: the signature is missing\n/);
    expect(await post(url, `${body} `, signed(body))).toBe(401);
    await wrote(/refused with 401: the signature is wrong\n/);
    expect((await ended('SIGINT')).stdout).toBe(`listening on ${url}\n`);
  });

  it('takes any event where it has no secret', async () => {
    const { url } = await listen();
    expect(await post(url, eventBody(7), { [SIGNATURE_HEADER]: 'whatever' })).toBe(204);
  });

  it('answers 400 to a body that cannot be read', async () => {
    const { url, ended } = await listen('--secret', SECRET);
    const event = Buffer.from(eventBody(7, '{"a":"é"}'), 'latin1');
    expect(await post(url, event, { [SIGNATURE_HEADER]: sign(SECRET, event) })).toBe(400);
    for (const body of ['', '{', '[]', '{"event_id":"evt_1"}'])
      expect(await post(url, body, signed(body))).toBe(400);
    expect((await ended('SIGINT')).stdout).toBe(`listening on ${url}\n`);
  });

  it('answers 400 to a body beyond its limit, and takes the largest event there can be', async () => {
    const { url } = await listen();
    expect(await post(url, Buffer.alloc(3 * 1024 * 1024, ' '))).toBe(400);
    expect(await post(url, eventBody(7, `{"text":"${'x'.repeat(1024 * 1024)}"}`))).toBe(204);
  });

  it('goes on after a sender that cuts its body off', async () => {
    const { url, wrote } = await listen();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{');
    socket.once('connect', () => setImmediate(() => socket.destroy()));
    await wrote(/refused with 400: the body cannot be read\n/);
    expect(await post(url, eventBody(7))).toBe(204);
  });

  it('answers 405 to anything but POST', async () => {
    const { url } = await listen();
    const answer = await fetch(url);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  });

  it('marks a duplicate and a later attempt', async () => {
    const { url, stdout, wrote } = await listen();
    await post(url, eventBody(7), { 'x-service-attempt': '1' });
    await post(url, eventBody(7), { 'x-service-attempt': '2' });
    await wrote(/evt_.*\n.*evt_.*\n/);
    const [, first, second] = stdout().split('\n');
    expect(first).not.toContain('[');
    expect(second).toContain(' [attempt 2, duplicate] ');
  });

  it('prints nothing but events to stdout with --json, each as it came but on one line', async () => {
    const { url, stdout, wrote } = await listen('--json');
    await post(url, eventBody(7, VERBATIM));
    await post(url, eventBody(7, VERBATIM));
    await wrote(new RegExp(`${delivery(7).event_id}: duplicate\n`));
    const line = `${eventBody(7, VERBATIM.replace('\n', ' '))}\n`;
    await eventually(() => expect(stdout()).toBe(line + line));
  });

  it('ends with 0 when interrupted, also while a sender keeps its connection', async () => {
    const listener = await listen();
    const socket = connect(Number(new URL(listener.url).port), '127.0.0.1').on('error', () => {});
    await new Promise((resolve) => socket.once('connect', resolve));
    expect((await listener.ended('SIGINT')).code).toBe(0);
  });

  it('leaves an event unanswered that it could not print', async () => {
    const listener = await listen();
    listener.child.stdout.destroy();
    await expect(post(listener.url, eventBody(7))).rejects.toThrow();
    expect((await listener.ended()).stderr).toBe('');
  });

  it('hides its secret from the process list', async () => {
    const { child } = await listen('--secret', SECRET);
    expect(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8')).not.toContain(SECRET);
  });

  it('says why it cannot listen', async () => {
    const { url } = await listen();
    const { port } = new URL(url);
    const ended = await run(['listen', '--port', port]);
    expect(ended).toEqual({
      code: 1,
      stdout: '',
      stderr: `sandboxctl: cannot listen on 127.0.0.1:${port}: address already in use\n`,
    });
  });
});

it('tells ids seen before from new ones, and forgets the oldest beyond its limit', () => {
  const recent = new RecentIds(2);
  expect(['a', 'b', 'a', 'c', 'b', 'a'].map((id) => recent.add(id))).toEqual([
    true,
    true,
    false,
    true,
    false,
    true,
  ]);
});
