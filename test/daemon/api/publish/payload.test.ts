import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../../src/contract/errors.ts';
import { payloadText } from '../../../../src/daemon/api/publish/payload.ts';

const of = (text: string) => payloadText(Buffer.from(text));

/** What is said of a body that is refused: `field: message`. */
function refusal(body: string | Buffer): string {
  try {
    payloadText(Buffer.from(body));
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).code).toBe('invalid_request');
    return (error as Error).message;
  }
  return 'taken';
}

const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;

describe('a payload', () => {
  it.each([
    '{}',
    '{"price": 1.10, "huge":1e400,"id":12345678901234567890}',
    '{"z":1,"a":2,"z":3}',
    '{ "text" : "\\u00fc ü 🦊 \\ud800 \\" } ]" }',
    '{"__proto__":{"polluted":true},"constructor":{"prototype":{}},"toJSON":1}',
    '{"payload":{"payload":{}}}',
    '{\r\n\t"a":\n[ ]}',
    '{"line":"\u2028\u2029\u007f"}',
  ])('is extracted exactly as it was written: %s', (payload) => {
    expect(of(`{"payload":${payload}}`)).toBe(payload);
    expect(of(` \t\r\n{ "payload"\n:  ${payload}\t} \n`)).toBe(payload);
  });

  it('is exactly the text that any JSON writer produces', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.constantFrom(undefined, 1, '\t'),
        fc.stringMatching(/^[ \t\n\r]{0,4}$/),
        (value, indent, space) => {
          const payload = JSON.stringify(value, null, indent);
          expect(of(`${space}{${space}"payload"${space}:${space}${payload}${space}}${space}`)).toBe(payload);
        },
      ),
    );
  });

  it('may have its key written with escapes, but only once', () => {
    for (const key of ['payl\\u006fad', '\\u0070ayload', 'payl\\u006Fa\\u0064']) {
      expect(of(`{"${key}": {"a":1.10}}`)).toBe('{"a":1.10}');
      expect(refusal(`{"${key}":{},"payload":{}}`)).toBe('payload: must be given once');
      expect(refusal(`{"payload":{},"${key}":{}}`)).toBe('payload: must be given once');
    }
    expect(refusal('{"payl\\u006ead":{}}')).toMatch(/^paylnad: unknown field/);
    expect(refusal('{"payl\\x6fad":{}}')).toBe('body: must be JSON');
  });

  it('does not pollute a prototype', () => {
    of('{"payload":{"__proto__":{"polluted":true}}}');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it('may be nested 100 levels deep, itself included, but not 101', () => {
    expect(of(`{"payload":${nested(100)}}`)).toBe(nested(100));
    expect(refusal(`{"payload":${nested(101)}}`)).toBe('payload: must not be nested deeper than 100 levels');
  });

  it('may contain any number of brackets in its strings', () => {
    const payload = JSON.stringify({ text: '[{"\\'.repeat(1_000) });
    expect(of(`{"payload":${payload}}`)).toBe(payload);
  });

  it.each([10_000, 100_000, 300_000])('nested %i levels deep is refused without being parsed', (depth) => {
    expect(refusal(`{"payload":{"a":${'['.repeat(depth)}`)).toContain('nested deeper');
    expect(refusal(`{"payload":${'{"a":'.repeat(depth)}`)).toContain('nested deeper');
  });
});

describe('a body is refused', () => {
  it.each<[string, string]>([
    ['', 'body: must be JSON'],
    ['   ', 'body: must be JSON'],
    ['{', 'body: must be JSON'],
    ['nonsense', 'body: must be JSON'],
    ["{'payload':{}}", 'body: must be JSON'],
    ['{"payload":{}', 'body: must be JSON'],
    ['{"payload":{}}}', 'body: must be JSON'],
    ['{"payload":{}} x', 'body: must be JSON'],
    ['{"payload":{},}', 'body: must be JSON'],
    ['{"payload":{}}{"payload":{}}', 'body: must be JSON'],
    ['{"payload":{"a":NaN}}', 'body: must be JSON'],
    ['{"payload":{"a":01}}', 'body: must be JSON'],
    ['{"payload":{"a":"\n"}}', 'body: must be JSON'],
    ['{"payload":{/**/}}', 'body: must be JSON'],
    ['\ufeff{"payload":{}}', 'body: must be JSON'],
    ['{"payload":\u00a0{}}', 'body: must be JSON'],
    ['[]', 'body: must be a JSON object'],
    ['null', 'body: must be a JSON object'],
    ['"payload"', 'body: must be a JSON object'],
    ['{}', 'payload: is required'],
    ['{"Payload":{}}', 'Payload: unknown field; only payload is allowed'],
    ['{"payload":{},"extra":1}', 'extra: unknown field; only payload is allowed'],
    ['{"extra":1,"payload":{}}', 'extra: unknown field; only payload is allowed'],
    ['{"__proto__":1,"payload":{}}', '__proto__: unknown field; only payload is allowed'],
    ['{"payload":{},"payload":{}}', 'payload: must be given once'],
    ['{"payload":[],"payload":{}}', 'payload: must be given once'],
    ['{"payload":null}', 'payload: must be a JSON object'],
    ['{"payload":[]}', 'payload: must be a JSON object'],
    ['{"payload":"{}"}', 'payload: must be a JSON object'],
    ['{"payload":1}', 'payload: must be a JSON object'],
    ['{"payload":true}', 'payload: must be a JSON object'],
  ])('that is %j', (body, message) => {
    expect(refusal(body)).toBe(message);
  });

  it.each([
    ['a lone continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['half a character', [0xf0, 0x9f, 0xa6]],
  ])('that is not UTF-8: %s', (_, bytes) => {
    const body = Buffer.concat([Buffer.from('{"payload":{"a":"'), Buffer.from(bytes), Buffer.from('"}}')]);
    expect(refusal(body)).toBe('body: must be UTF-8');
  });

  it('whatever the text is, unless it is one key with one object', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((json) => `{"payload":${json}}`),
        ),
        (text) => {
          let value: unknown;
          try {
            value = JSON.parse(text);
          } catch {
            value = undefined;
          }
          const payload = (value as { payload?: unknown } | null | undefined)?.payload;
          const is_object = typeof payload === 'object' && payload !== null && !Array.isArray(payload);
          expect(refusal(text) === 'taken').toBe(is_object);
        },
      ),
    );
  });
});

describe('a mebibyte of white space', () => {
  const space = ' '.repeat(2 ** 20);

  it.each([
    ['alone', space, 'body: must be JSON'],
    ['before the body', `${space}{"payload":{}}`, 'taken'],
    ['before the key', `{${space}"payload":{}}`, 'taken'],
    ['behind the key', `{"payload"${space}:{}}`, 'taken'],
    ['around the payload', `{"payload":${space}{}${space}}`, 'taken'],
    ['with nothing after it', `{"payload":${space}`, 'body: must be JSON'],
    ['before another key', `{${space}"other":{}}`, 'other: unknown field; only payload is allowed'],
  ])('%s is handled in linear time', (_, body, expected) => {
    // A quadratic scan of this would take minutes and meet the time limit of the test.
    for (let i = 0; i < 10; i++) expect(refusal(body)).toBe(expected);
  });
});
