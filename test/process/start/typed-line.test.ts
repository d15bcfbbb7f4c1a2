import { expect, test } from 'vitest';
import { TypedLine } from '../../../src/process/start/typed-line.ts';

/** The settings of a new terminal, in which UTF-8 is typed. */
const INITIAL = {
  input: 0o42400,
  local: 0o105073,
  characters: Uint8Array.of(3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0),
};
const NOFLSH = 0o200;
const ICANON = 0o2;

/** The keys for an end after this was typed, in one piece and byte by byte. */
function endAfter(text: string, settings = INITIAL): (string | undefined)[] {
  return [[Buffer.from(text)], Array.from(Buffer.from(text), (byte) => Buffer.of(byte))].map((pieces) => {
    const line = new TypedLine();
    for (const piece of pieces) line.type(piece, settings);
    return line.typeEnd(settings)?.toString('latin1');
  });
}

const with_eol = Uint8Array.from(INITIAL.characters);
with_eol[11] = 0x3b;

test.each([
  ['nothing', '', 1],
  ['a line', 'abc\n', 1],
  ['a line ended by Return', 'abc\r', 1],
  ['a part of a line', 'a\nbc', 2],
  ['a part that was taken with an end', 'abc\x04', 1],
  ['a line that was killed', 'abc\x15', 1],
  ['a character and its erasure', 'ü\x7f', 1],
  ['more than was erased', 'aü\x7f', 2],
  ['a word that was erased', '  one.\x17', 2],
  ['only a word, which was erased', 'one.\x17', 1],
  ['a line that a signal flushed', 'abc\x03', 1],
  ['keys that stop and start output', '\x13\x11', 1],
  ['a quoted end', '\x16\x04', 2],
  ['a quote alone', '\x16', 3],
  ['a zero', '\0', 2],
])('%s', (_, text, presses) => {
  expect(endAfter(text)).toEqual(Array(2).fill('\x04'.repeat(presses)));
});

test('other settings are heeded', () => {
  expect(endAfter('abc\x03', { ...INITIAL, local: INITIAL.local | NOFLSH })[0]).toBe('\x04\x04');
  expect(endAfter('abc\r', { ...INITIAL, input: 0 })[0]).toBe('\x04\x04');
  expect(endAfter('abc;', { ...INITIAL, characters: with_eol })[0]).toBe('\x04');
  expect(endAfter('abc', { ...INITIAL, local: INITIAL.local & ~ICANON })[0]).toBeUndefined();
  expect(endAfter('abc', { ...INITIAL, characters: new Uint8Array(32) })[0]).toBeUndefined();
});

test('a signal key is one only while the terminal sends signals', () => {
  const line = new TypedLine();
  expect(line.type(Buffer.from('a\x03\x1c'), INITIAL)).toEqual(['SIGINT', 'SIGQUIT']);
  expect(line.type(Buffer.from('a\x03\x1c'), { ...INITIAL, local: 0 })).toEqual([]);
});
