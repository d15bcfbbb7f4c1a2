import fc from 'fast-check';
import { expect, it } from 'vitest';
import { prettyJson } from '../../../src/console/parts/json.ts';

it('JSON is spaced and nothing else: it says the same, and numbers stay as they were written', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(JSON.parse(prettyJson(text))).toEqual(JSON.parse(text));
    }),
  );
  expect(prettyJson('{"a":1.10,"b":[],"c":{},"d":[1e400,12345678901234567890]}')).toBe(
    '{\n  "a": 1.10,\n  "b": [],\n  "c": {},\n  "d": [\n    1e400,\n    12345678901234567890\n  ]\n}',
  );
});

it('what cannot be seen is shown by its number, in text that is no JSON as well', () => {
  expect(prettyJson('{"a":"\u202egnp.exe"}')).toBe('{\n  "a": "\\u202egnp.exe"\n}');
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left.
      expect(prettyJson(text)).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202e\u200b]/);
    }),
  );
});
