import { isUtf8 } from 'node:buffer';
import { PAYLOAD_MAX_DEPTH } from '../../../contract/defaults.ts';
import { type ApiError, invalidField } from '../../../contract/errors.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;

/** The key `payload`; each letter may be written as a JSON escape. */
const KEY =
  '(?:p|\\\\u0070)(?:a|\\\\u0061)(?:y|\\\\u0079)(?:l|\\\\u006[cC])(?:o|\\\\u006[fF])(?:a|\\\\u0061)(?:d|\\\\u0064)';
/** Everything before the payload's text. */
const OPENING = new RegExp(`^[ \\t\\n\\r]*\\{[ \\t\\n\\r]*"${KEY}"[ \\t\\n\\r]*:`);
const WHITE_SPACE = ' \t\n\r';

/**
 * Returns the payload's text from the body `{"payload":{…}}`, exactly as the publisher wrote it.
 * Throws `invalid_request` if the body is not UTF-8 or JSON, has another key, or the payload is not an object or is
 * nested too deep.
 * Source: contract section 4, row POST `/webhook/publish`.
 */
export function payloadText(body: Buffer): string {
  if (!isUtf8(body)) throw invalidField('body', 'must be UTF-8');
  // Checked before parsing, so that hostile nesting costs nothing.
  if (depthOf(body) > PAYLOAD_MAX_DEPTH + 1) {
    throw invalidField('payload', `must not be nested deeper than ${PAYLOAD_MAX_DEPTH} levels`);
  }
  const text = body.toString('utf8');
  const payload = inner(text);
  const value = payload === undefined ? undefined : parsed(payload);
  // The text parses as one value by itself, so it cannot hide a second key.
  if (payload === undefined || value === undefined) throw refusal(text);
  if (!isObject(value)) throw invalidField('payload', 'must be a JSON object');
  return payload;
}

/** The text between the colon and the last brace, without surrounding white space. */
function inner(text: string): string | undefined {
  const opening = OPENING.exec(text);
  const end = lastVisible(text, text.length);
  if (!opening || text[end] !== '}') return undefined;
  let start = opening[0].length;
  while (start < end && WHITE_SPACE.includes(text[start] as string)) start++;
  return text.slice(start, lastVisible(text, end) + 1);
}

/** The index of the last character before `end` that is not white space. */
function lastVisible(text: string, end: number): number {
  let index = end - 1;
  while (index > 0 && WHITE_SPACE.includes(text[index] as string)) index--;
  return index;
}

/** The error for a body that is not `{"payload":{…}}`. */
function refusal(text: string): ApiError {
  const value = parsed(text);
  if (value === undefined) return invalidField('body', 'must be JSON');
  if (!isObject(value)) return invalidField('body', 'must be a JSON object');
  const other = Object.keys(value).find((key) => key !== 'payload');
  if (other !== undefined) return invalidField(other, 'unknown field; only payload is allowed');
  if (!Object.hasOwn(value, 'payload')) return invalidField('payload', 'is required');
  return invalidField('payload', 'must be given once');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The nesting depth of objects and arrays, including the outermost. */
function depthOf(json: Buffer): number {
  let depth = 0;
  let deepest = 0;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === QUOTE) i = stringEnd(json, i + 1);
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) deepest = Math.max(deepest, ++depth);
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
  }
  return deepest;
}

/** So many bytes of a string are looked at one by one: a search costs as much. */
const NEAR_BYTES = 32;

/** Where the string that begins at `from` has its closing quote; the end of the text if it has none. */
function stringEnd(json: Buffer, from: number): number {
  let i = from;
  while (i < json.length) {
    for (const near = i + NEAR_BYTES; i < near; i++) {
      if (json[i] === BACKSLASH) i++;
      else if (json[i] === QUOTE) return i;
    }
    const quote = json.indexOf(QUOTE, i);
    if (quote < 0) break;
    let slashes = 0;
    while (quote - slashes > i && json[quote - slashes - 1] === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote;
    i = quote + 1;
  }
  return json.length;
}
