import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const TESTS = join(import.meta.dirname, '..');
const TABLE = readFileSync(join(import.meta.dirname, 'specification.md'), 'utf8');
const CONTRACT = readFileSync(join(TESTS, '../src/contract/README.md'), 'utf8');
/** A statement, the section of the contract, a file of tests and what the title of one there begins or ends with. */
const ROW = /^\| (?<statement>[^|]+) \| (?<section>\d+) \| `(?<file>[^`]+)`: (?<title>[^|]+) \|$/;
/** A call that names a test, with its title, which may be on a line of its own. */
const TITLED = /\b(?:it|test|describe|describeOnStores)(?:\.each\([\s\S]*?\))?\(\s*(['"`])([\s\S]*?)\1/g;

const rows = TABLE.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| Statement'));

describe('each statement of the specification', () => {
  it('has a section of the contract, and a test that is there', () => {
    const missing = rows.flatMap((row) => {
      const { section, file = '', title = '' } = ROW.exec(row)?.groups ?? {};
      if (section === undefined) return [`no row: ${row}`];
      if (!new RegExp(`^## ${section}\\. `, 'm').test(CONTRACT)) return [`no section ${section}: ${row}`];
      if (!existsSync(join(TESTS, file))) return [`no file: ${row}`];
      const titles = [...readFileSync(join(TESTS, file), 'utf8').matchAll(TITLED)].map(([, , text]) => text);
      return titles.some((text) => text?.includes(title)) ? [] : [`no test of that title: ${row}`];
    });
    expect(missing).toEqual([]);
    expect(rows.length).toBeGreaterThan(80);
  });
});
