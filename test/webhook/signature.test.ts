import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  SIGNATURE_HEADER,
  type StandardWebhookHeaders,
  sign,
  standardWebhookHeaders,
  verify,
} from '../../src/webhook/signature.ts';

interface Vector {
  name: string;
  secret: string;
  body?: string;
  body_base64?: string;
  signature: string;
  standard_webhooks?: StandardWebhookHeaders;
}

const vectors: Vector[] = JSON.parse(
  readFileSync(new URL('../../fixtures/signatures.json', import.meta.url), 'utf8'),
);
const without_openssl = spawnSync('openssl', ['version']).status !== 0;

function bytes(vector: Vector): Buffer {
  return vector.body_base64 === undefined
    ? Buffer.from(vector.body ?? '')
    : Buffer.from(vector.body_base64, 'base64');
}

/** HMAC-SHA256 by the openssl command line, as an implementation that shares nothing with this one. */
function opensslHmac(key: Buffer, message: Buffer): Buffer {
  const options = ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${key.toString('hex')}`, '-binary'];
  return execFileSync('openssl', options, { input: message });
}

describe.each(vectors)('the vector "$name"', (vector) => {
  const body = bytes(vector);

  it('is what the body is signed with', () => {
    expect(sign(vector.secret, body)).toBe(vector.signature);
  });

  it('verifies, and no longer does with one bit of the body changed', () => {
    expect(verify(vector.secret, body, vector.signature)).toBe(true);
    const tampered = body.length === 0 ? Buffer.from([0]) : Buffer.from(body);
    tampered[0] = (tampered[0] ?? 0) ^ 1;
    expect(verify(vector.secret, tampered, vector.signature)).toBe(false);
  });

  it.skipIf(without_openssl)('is what openssl computes', () => {
    expect(opensslHmac(Buffer.from(vector.secret), body).toString('hex')).toBe(vector.signature);
  });
});

describe('a signature', () => {
  const body = '{"event_id":"evt_1"}';
  const good = sign('a key made for this test', body);

  it('travels in the header of the contract', () => {
    expect(SIGNATURE_HEADER).toBe('X-Service-Signature');
  });

  it('is the same over a string and over its UTF-8 bytes', () => {
    const text = 'Grüße 🌍';
    expect(sign('k', text)).toBe(sign('k', new TextEncoder().encode(text)));
  });

  const garbage: [string, unknown][] = [
    ['undefined', undefined],
    ['null', null],
    ['an empty string', ''],
    ['a number', 7],
    ['several headers', [good, good]],
    ['one digit too few', good.slice(1)],
    ['one digit too many', `${good}0`],
    ['a line end after it', `${good}\n`],
    ['upper case', good.toUpperCase()],
    ['64 characters that are no hex digits', 'é'.repeat(64)],
    ['64 other digits', '0'.repeat(64)],
    ['a prefix', `sha256=${good}`],
  ];
  it.each(garbage)('does not verify as %s', (_, signature) => {
    expect(verify('a key made for this test', body, signature)).toBe(false);
  });

  it('does not verify with another secret', () => {
    expect(verify('another key', body, good)).toBe(false);
  });

  it('never verifies under an empty secret, with which anyone could sign', () => {
    expect(verify('', body, sign('', body))).toBe(false);
  });
});

describe('the headers of Standard Webhooks', () => {
  const standard = vectors.flatMap((vector) =>
    vector.standard_webhooks ? [{ ...vector, headers: vector.standard_webhooks }] : [],
  );

  it.each(standard)('are those of the vector "$name"', (vector) => {
    const { 'webhook-id': id, 'webhook-timestamp': timestamp_s } = vector.headers;
    expect(standardWebhookHeaders(vector.secret, id, Number(timestamp_s), bytes(vector))).toEqual(
      vector.headers,
    );
  });

  it.skipIf(without_openssl).each(standard)('carry what openssl computes for "$name"', (vector) => {
    const {
      'webhook-id': id,
      'webhook-timestamp': timestamp_s,
      'webhook-signature': signature,
    } = vector.headers;
    const key = Buffer.from(vector.secret.slice('whsec_'.length), 'base64');
    const signed = Buffer.concat([Buffer.from(`${id}.${timestamp_s}.`), bytes(vector)]);
    expect(signature).toBe(`v1,${opensslHmac(key, signed).toString('base64')}`);
  });
  it('are absent where the secret has no such prefix', () => {
    expect(standardWebhookHeaders('a key made for this test', 'evt_1', 1, '{}')).toBeNull();
    expect(standardWebhookHeaders('WHSEC_AAAA', 'evt_1', 1, '{}')).toBeNull();
  });

  it('are absent where no key follows the prefix', () => {
    expect(standardWebhookHeaders('whsec_', 'evt_1', 1, '{}')).toBeNull();
    expect(standardWebhookHeaders('whsec_====', 'evt_1', 1, '{}')).toBeNull();
  });
});
