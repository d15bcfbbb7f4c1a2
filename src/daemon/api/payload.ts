import { isUtf8 } from 'node:buffer';
import { PAYLOAD_MAX_DEPTH } from '../../contract/defaults.ts';
import { type ApiError, invalidField } from '../../contract/errors.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;

/** The one key, each of its letters as it is or as JSON's escape of it. */
const KEY =
  '(?:p|\\\\u0070)(?:a|\\\\u0061)(?:y|\\\\u0079)(?:l|\\\\u006[cC])(?:o|\\\\u006[fF])(?:a|\\\\u0061)(?:d|\\\\u0064)';
/** What comes before the payload's own text. */
const OPENING = new RegExp(`^[ \\t\\n\\r]*\\{[ \\t\\n\\r]*"${KEY}"[ \\t\\n\\r]*:`);
const WHITE_SPACE = ' \t\n\r';

/**
 * The payload's text, exactly as the publisher wrote it, out of the body `{"payload":{…}}`.
 * Throws `invalid_request` for anything else: no JSON, bad UTF-8, another key, no object, nested too deep.
 * Source: contract section 4, row POST `/webhook/publish`.
 */
export function payloadText(body: Buffer): string {
  if (!isUtf8(body)) throw invalidField('body', 'is not UTF-8');
  // Before parsing, so that a hostile depth costs nothing.
  if (depthOf(body) > PAYLOAD_MAX_DEPTH + 1) {
    throw invalidField('payload', `is nested deeper than ${PAYLOAD_MAX_DEPTH}`);
  }
  const text = body.toString('utf8');
  const payload = inner(text);
  const value = payload === undefined ? undefined : parsed(payload);
  // Text that is one value by itself cannot hide a second key behind it.
  if (payload === undefined || value === undefined) throw refusal(text);
  if (!isObject(value)) throw invalidField('payload', 'must be a JSON object');
  return payload;
}

/** The text between the colon and the last brace, without the white space around it. */
function inner(text: string): string | undefined {
  const opening = OPENING.exec(text);
  const end = lastVisible(text, text.length);
  if (!opening || text[end] !== '}') return undefined;
  let start = opening[0].length;
  while (start < end && WHITE_SPACE.includes(text[start] as string)) start++;
  return text.slice(start, lastVisible(text, end) + 1);
}

/** The index of the last character before `end` that is no white space. */
function lastVisible(text: string, end: number): number {
  let index = end - 1;
  while (index > 0 && WHITE_SPACE.includes(text[index] as string)) index--;
  return index;
}

/** Why a body is not `{"payload":{…}}`. */
function refusal(text: string): ApiError {
  const value = parsed(text);
  if (value === undefined) return invalidField('body', 'is not JSON');
  if (!isObject(value)) return invalidField('body', 'must be a JSON object');
  const other = Object.keys(value).find((key) => key !== 'payload');
  if (other !== undefined) return invalidField(other, 'is not known; the body has one key, payload');
  if (!Object.hasOwn(value, 'payload')) return invalidField('payload', 'is needed');
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

/** How deep objects and arrays are nested, the outermost counted. */
function depthOf(json: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let is_string = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (is_string) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) is_string = false;
    } else if (byte === QUOTE) is_string = true;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) deepest = Math.max(deepest, ++depth);
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
  }
  return deepest;
}
