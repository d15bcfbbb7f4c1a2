import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { sign } from '../../src/webhook/signature.ts';
import { SECRET } from '../support/receivers/receiver.ts';

const SCRIPT = fileURLToPath(new URL('../../fixtures/receivers/shell.sh', import.meta.url));
const without_openssl = spawnSync('openssl', ['version']).status !== 0;
const title = without_openssl ? ' (skipped: openssl is not installed here)' : '';

describe.skipIf(without_openssl)(`the shell function${title}`, () => {
  const scratch = mkdtempSync(join(tmpdir(), 'receiver-'));
  const file = join(scratch, 'body');
  const body = '{"event_id":"evt_1","payload":{ "price": 1.10, "text": "Grüße 🌍" }}';

  afterAll(() => rmSync(scratch, { recursive: true }));

  function verify(bytes: string | null, signature: string, env: NodeJS.ProcessEnv = {}): number | null {
    if (bytes !== null) writeFileSync(file, bytes);
    const path = bytes === null ? join(scratch, 'missing') : file;
    return spawnSync(SCRIPT, [path, signature], {
      env: { PATH: process.env.PATH, SIGNING_SECRET: SECRET, ...env },
    }).status;
  }

  it('exits 0 for the signature of the very bytes', () => {
    expect(verify(body, sign(SECRET, body))).toBe(0);
    expect(verify(`${body}\n`, sign(SECRET, `${body}\n`))).toBe(0);
  });

  it('exits 1 for a tampered or re-serialized body and for a missing or wrong signature', () => {
    const good = sign(SECRET, body);
    expect(verify(body.replace('1.10', '9.10'), good)).toBe(1);
    expect(verify(JSON.stringify(JSON.parse(body)), good)).toBe(1);
    expect(verify(body, '')).toBe(1);
    expect(verify(body, sign('another key', body))).toBe(1);
  });

  it('exits 2 where it cannot tell: no file, no secret, no openssl', () => {
    expect(verify(null, sign(SECRET, body))).toBe(2);
    expect(verify(body, sign('', body), { SIGNING_SECRET: '' })).toBe(2);
    expect(verify(body, '', { PATH: scratch })).toBe(2);
  });
});
