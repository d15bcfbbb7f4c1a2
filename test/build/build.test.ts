import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SANDBOXD } from '../support/sandboxd-program.ts';

const DIST = dirname(SANDBOXD);

describe('what a built program loads', () => {
  it('is part of Node, of the build, or a package with native code', () => {
    const known = [...builtinModules, 'better-sqlite3', 'koffi', '@lydell/node-pty/requireBinary.js'];
    const loaded = readdirSync(DIST)
      .filter((name) => name.endsWith('.cjs') && !name.startsWith('sandbox-manager'))
      .flatMap((name) => {
        const lines = readFileSync(join(DIST, name), 'utf8').split('\n');
        return lines.filter((line) => !/^\s*(\*|\/\/)|code:/.test(line));
      })
      .flatMap((line) => [...line.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, id = '']) => id));
    const outside = loaded.filter((id) => !/^(node:|\.\/)/.test(id) && !known.includes(id));
    expect(outside.filter((id) => !/^ajv/.test(id))).toEqual([]);
  });
});

describe('what runs in every sandbox', () => {
  it('is kept by the engine in one byte a character', () => {
    const parts = readdirSync(DIST).filter((name) =>
      /^(sandboxd|sandboxctl|app|watch-thread)\b.*\.cjs$/.test(name),
    );
    expect(parts.length).toBeGreaterThan(5);
    const wide = parts.filter((name) => /[^\p{ASCII}]/u.test(readFileSync(join(DIST, name), 'utf8')));
    expect(wide).toEqual([]);
  });
});
