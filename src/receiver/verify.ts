import type { RawBody } from './parse.ts';

/** Headers of a request: of `fetch`, or as Node and most frameworks give them, in any case. */
export type RequestHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** What `verify` may be told. */
export interface VerifyOptions {
  /** How old or new a `webhook-timestamp` may be, in seconds; default 300. `Infinity` for bodies that were stored. */
  tolerance_s?: number;
  /** The present time in ms since the epoch. */
  now_ms?: number;
}

const TOLERANCE_S = 300;
const SECRET_PREFIX = 'whsec_';
const HMAC = { name: 'HMAC', hash: 'SHA-256' };

const encoder = new TextEncoder();

/**
 * Whether a request is from whoever holds the secret. `rawBody` is the body as it came: never parse and print it again.
 * Both forms are checked, `X-Service-Signature` and, with a `whsec_` secret, Standard Webhooks with its timestamp: one of
 * them is there, and each that is there is right. In constant time, by Web Crypto. Contract section 2.
 *
 * An event may come again with the same bytes: de-duplicate by `event_id`.
 */
export async function verify(
  rawBody: RawBody,
  headers: RequestHeaders,
  secret: string,
  options: VerifyOptions = {},
): Promise<boolean> {
  const body = bytesOf(rawBody);
  const given = (name: string) => headerOf(headers, name);
  const key = standardKey(secret);
  const results: boolean[] = [];
  const own = given('x-service-signature');
  if (own !== null && secret !== '') results.push(await isSigned(encoder.encode(secret), fromHex(own), body));
  const standard = given('webhook-signature');
  if (standard !== null && key !== null) {
    const id = given('webhook-id');
    const timestamp = given('webhook-timestamp');
    results.push(
      isTimely(timestamp, options) && (await isStandard(key, standard, `${id}.${timestamp}.`, body)),
    );
  }
  return results.length > 0 && results.every((is_right) => is_right);
}

/** One of the signatures, of which there are several while a secret is changed, is right. */
async function isStandard(key: Bytes, signatures: string, head: string, body: Bytes): Promise<boolean> {
  const first = encoder.encode(head);
  const signed = new Uint8Array(first.length + body.length);
  signed.set(first);
  signed.set(body, first.length);
  const versions = signatures.split(' ').filter((each) => each.startsWith('v1,'));
  const results = await Promise.all(versions.map((each) => isSigned(key, fromBase64(each.slice(3)), signed)));
  return results.includes(true);
}

function isTimely(
  timestamp: string | null,
  { tolerance_s = TOLERANCE_S, now_ms = Date.now() }: VerifyOptions,
): boolean {
  if (timestamp === null || !/^\d{1,12}$/.test(timestamp)) return false;
  return Math.abs(now_ms / 1000 - Number(timestamp)) <= tolerance_s;
}

type Bytes = Uint8Array<ArrayBuffer>;

async function isSigned(key_bytes: Bytes, signature: Bytes | null, body: Bytes): Promise<boolean> {
  if (signature === null) return false;
  const key = await crypto.subtle.importKey('raw', key_bytes, HMAC, false, ['verify']);
  return crypto.subtle.verify('HMAC', key, signature, body);
}

/** A header that is there once; two of a name are none. */
function headerOf(headers: RequestHeaders, name: string): string | null {
  if (typeof headers.get === 'function') return headers.get(name);
  const values = Object.entries(headers as Record<string, unknown>)
    .filter(([each]) => each.toLowerCase() === name)
    .flatMap(([, value]) => value);
  return values.length === 1 && typeof values[0] === 'string' ? values[0] : null;
}

/** The key behind `whsec_`, decoded as it is for signing: what is no base64 is passed over. Null where there is none. */
function standardKey(secret: string): Bytes | null {
  if (!secret.startsWith(SECRET_PREFIX)) return null;
  const [text = ''] = secret.slice(SECRET_PREFIX.length).split('=');
  const digits = text
    .replaceAll(/[^A-Za-z0-9+/_-]/g, '')
    .replaceAll('-', '+')
    .replaceAll('_', '/');
  const key = fromBase64(digits.length % 4 === 1 ? digits.slice(0, -1) : digits);
  return key === null || key.length === 0 ? null : key;
}

function fromHex(text: string): Bytes | null {
  if (!/^[0-9a-f]{64}$/.test(text)) return null;
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

function fromBase64(text: string): Bytes | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
}

function bytesOf(rawBody: RawBody): Bytes {
  if (typeof rawBody === 'string') return encoder.encode(rawBody);
  return new Uint8Array(rawBody);
}
