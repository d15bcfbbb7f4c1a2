import { createHmac, createSecretKey, timingSafeEqual } from 'node:crypto';
import { HmacKey } from './hmac.ts';

/** The header that carries the signature of the body. Source: contract section 2. */
export const SIGNATURE_HEADER = 'X-Service-Signature';

/** Nearly all bodies are signed with the same secret as the one before. */
let last: { secret: string; key: HmacKey } | null = null;

/** A secret with this prefix also gives the headers of Standard Webhooks. */
const STANDARD_WEBHOOKS_PREFIX = 'whsec_';

const SIGNATURE = /^[0-9a-f]{64}$/;

/** The three headers of Standard Webhooks, version 1. Source: contract section 2. */
export interface StandardWebhookHeaders {
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
}

/**
 * HMAC-SHA256 over the exact body bytes, keyed with the secret's UTF-8 bytes as given (a prefix included).
 * Returns 64 lower-case hex digits. Source: contract section 2.
 */
export function sign(secret: string, body: string | Uint8Array): string {
  if (last?.secret !== secret) last = { secret, key: new HmacKey(Buffer.from(secret)) };
  return last.key.sign(body);
}

/**
 * Whether `signature` is `sign(secret, body)`, compared in constant time. It may be anything a header can hold: false
 * where it is not exactly 64 lower-case hex digits, and under an empty secret.
 */
export function verify(secret: string, body: string | Uint8Array, signature: unknown): boolean {
  if (secret === '' || typeof signature !== 'string' || !SIGNATURE.test(signature)) return false;
  return timingSafeEqual(Buffer.from(sign(secret, body)), Buffer.from(signature));
}

/** Whether a secret asks for the headers of Standard Webhooks: `whsec_` and a key. Source: contract section 2. */
export function asksForStandardWebhooks(secret: string): boolean {
  return standardWebhooksKey(secret) !== null;
}

function standardWebhooksKey(secret: string): Buffer | null {
  if (!secret.startsWith(STANDARD_WEBHOOKS_PREFIX)) return null;
  const key = Buffer.from(secret.slice(STANDARD_WEBHOOKS_PREFIX.length), 'base64');
  // Anyone can sign with an empty key.
  return key.length === 0 ? null : key;
}

/**
 * The headers of Standard Webhooks for one attempt, `timestamp_s` in whole seconds since the epoch. Null where
 * the secret does not start with `whsec_` or no key follows it. Source: contract section 2.
 */
export function standardWebhookHeaders(
  secret: string,
  event_id: string,
  timestamp_s: number,
  body: string | Uint8Array,
): StandardWebhookHeaders | null {
  const key = standardWebhooksKey(secret);
  if (!key) return null;
  // A key object: with the key's bytes, createHmac takes several times as long.
  const signature = createHmac('sha256', createSecretKey(key))
    .update(`${event_id}.${timestamp_s}.`)
    .update(body)
    .digest('base64');
  return {
    'webhook-id': event_id,
    'webhook-timestamp': String(timestamp_s),
    'webhook-signature': `v1,${signature}`,
  };
}
