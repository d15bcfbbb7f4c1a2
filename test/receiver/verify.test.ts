import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { verify } from '../../src/receiver/events.ts';
import { sign, standardWebhookHeaders } from '../../src/webhook/signature.ts';

const vectors: { name: string; secret: string; body?: string; body_base64?: string; signature: string }[] =
  JSON.parse(readFileSync(new URL('../../fixtures/signatures.json', import.meta.url), 'utf8'));
const SECRET = 'whsec_c2VjcmV0LWtleS1vZi10aGUtdGVhbQ==';
const BODY = '{"event_type":"agent.event"}';
const NOW_S = 1_800_000_000;
const at = { now_ms: NOW_S * 1000 };
const own = { 'x-service-signature': sign(SECRET, BODY) };
const standard = standardWebhookHeaders(SECRET, 'evt_1', NOW_S, BODY) as unknown as Record<string, string>;

describe('verify', () => {
  it.each(vectors)('takes $name, in any form that a server gives it', async (vector) => {
    const { secret, body, body_base64 = '', signature } = vector;
    const bytes = new Uint8Array(body === undefined ? Buffer.from(body_base64, 'base64') : Buffer.from(body));
    const headers = { 'X-Service-Signature': signature };
    if (body !== undefined) expect(await verify(body, headers, secret)).toBe(true);
    expect(await verify(bytes, new Headers(headers), secret)).toBe(true);
    expect(await verify(bytes.buffer, { 'x-service-signature': [signature] }, secret)).toBe(true);
    expect(await verify(new Uint8Array([...bytes, 0]), headers, secret)).toBe(false);
    expect(await verify(bytes, headers, `${secret}.`)).toBe(false);
  });

  it('takes either form or both, and none of which one is wrong', async () => {
    for (const headers of [own, standard, { ...own, ...standard }]) {
      expect(await verify(BODY, headers, SECRET, at)).toBe(true);
      expect(await verify(`${BODY} `, headers, SECRET, at)).toBe(false);
    }
    const wrong = 'f'.repeat(64);
    expect(await verify(BODY, { ...standard, 'x-service-signature': wrong }, SECRET, at)).toBe(false);
    expect(await verify(BODY, { ...own, ...standard, 'webhook-id': 'evt_2' }, SECRET, at)).toBe(false);
    expect(await verify(BODY, {}, SECRET, at)).toBe(false);
  });

  it('takes one of several signatures of Standard Webhooks, while they are timely', async () => {
    const later = new Date((NOW_S + 100) * 1000);
    const foreign = new Webhook(SECRET).sign('evt_1', later, BODY);
    const headers = {
      'webhook-id': 'evt_1',
      'webhook-timestamp': String(NOW_S + 100),
      'webhook-signature': `v2,abc v1,${'A'.repeat(43)}= ${foreign}`,
    };
    expect(await verify(BODY, headers, SECRET, at)).toBe(true);
    for (const [age_s, is_taken] of [
      [299, true],
      [301, false],
      [-301, false],
    ] as const) {
      expect(await verify(BODY, standard, SECRET, { now_ms: (NOW_S + age_s) * 1000 })).toBe(is_taken);
    }
    const stored = { now_ms: (NOW_S + 1e6) * 1000, tolerance_s: Number.POSITIVE_INFINITY };
    expect(await verify(BODY, standard, SECRET, stored)).toBe(true);
  });

  it('never takes what anyone could sign, nor throws at what anyone could send', async () => {
    const unkeyed = createHmac('sha256', '').update(BODY).digest('hex');
    expect(await verify(BODY, { 'x-service-signature': unkeyed }, '')).toBe(false);
    const head = `evt_1.${NOW_S}.`;
    const empty = createHmac('sha256', '')
      .update(head + BODY)
      .digest('base64');
    expect(await verify(BODY, { ...standard, 'webhook-signature': `v1,${empty}` }, 'whsec_', at)).toBe(false);
    const signature = own['x-service-signature'];
    for (const given of [
      '',
      'x',
      signature.toUpperCase(),
      ` ${signature}`,
      `${signature}00`,
      'é'.repeat(64),
    ]) {
      expect(await verify(BODY, { 'x-service-signature': given }, SECRET)).toBe(false);
    }
    const twice = { 'x-service-signature': [signature, signature] };
    expect(await verify(BODY, twice, SECRET)).toBe(false);
    expect(await verify(BODY, { 'x-service-signature': signature, 'X-SERVICE-SIGNATURE': 'x' }, SECRET)).toBe(
      false,
    );
    for (const timestamp of [undefined, '', 'NaN', '1e9', '-1', 'Infinity']) {
      expect(await verify(BODY, { ...standard, 'webhook-timestamp': timestamp }, SECRET, at)).toBe(false);
    }
    for (const given of ['v1,', 'v1,%%%', 'v1', ',', 'v1a,abc']) {
      expect(await verify(BODY, { ...standard, 'webhook-signature': given }, SECRET, at)).toBe(false);
    }
  });

  it('decodes a key as it is decoded for signing', async () => {
    for (const key of [
      'YWJj',
      'YWJjZA==',
      'YWJjZA',
      'Y-_j',
      'Y+/j',
      'YW Jj\n',
      'YWJjZ',
      'YW=JjZA==',
      '%YWJj',
    ]) {
      const headers = standardWebhookHeaders(`whsec_${key}`, 'evt_1', NOW_S, BODY);
      expect([key, await verify(BODY, { ...headers }, `whsec_${key}`, at)]).toEqual([key, true]);
    }
  });
});
