/**
 * The same program in ASCII only: other characters, which minified code has only in literals, are escaped. The engine keeps
 * a source with any other character in twice the memory.
 */
export function ascii(code: string): string {
  return code.replace(/[^\p{ASCII}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
