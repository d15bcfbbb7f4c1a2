import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { archiveImage } from '../../../.build/release/archive.ts';
import { type Bill, packagesIn, releaseBill } from '../../../.build/release/bill.ts';
import { IS_ROOT } from '../../support/rights.ts';
import { scratchFolder } from '../../support/scratch.ts';

const COMMIT = { hash: 'c0ffee', time_s: 1_767_225_600 };
const NODE = 'usr/local/lib/sandboxd/node';

/** A small image, whose files are that old. */
function image(names: string[], age_s: number, node_mode: number): string {
  const folder = scratchFolder();
  for (const name of names) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${name}\n`);
    chmodSync(path, name === NODE ? node_mode : 0o644);
    utimesSync(path, age_s, age_s);
  }
  return folder;
}

it('an archive of the same tree has the same bytes, whoever made the tree and when', async () => {
  const out = scratchFolder();
  const names = [NODE, 'usr/local/bin/sandboxd', `usr/local/lib/sandboxd/${'long'.repeat(30)}.cjs`];
  const [first, second] = [join(out, 'first.tar.gz'), join(out, 'second.tar.gz')];
  await archiveImage(image(names, 1_000_000_000, IS_ROOT ? 0o111 : 0o411), first, COMMIT.time_s);
  await archiveImage(image(names.toReversed(), 1_700_000_000, 0o511), second, COMMIT.time_s);
  expect(readFileSync(second).equals(readFileSync(first))).toBe(true);
  const env = { PATH: process.env.PATH, TZ: 'UTC' };
  const listed = execFileSync('tar', ['-tvzf', first], { encoding: 'utf8', env }).trim().split('\n');
  const paths = listed.map((line) => line.split(' ').at(-1));
  expect(paths).toEqual([...new Set(paths)].sort());
  expect(paths).toEqual(expect.arrayContaining(names));
  expect(listed.find((line) => line.endsWith(NODE))).toMatch(/^---x--x--x root\/root +\d+ 2026-01-01 00:00 /);
});

const component = (name: string, more: object = {}) => ({
  'bom-ref': `${name}@1.0.0`,
  name,
  version: '1.0.0',
  ...more,
});
const development = { properties: [{ name: 'cdx:npm:package:development', value: 'true' }] };
const bill = (folder: string, timestamp: string): Bill => ({
  serialNumber: `urn:uuid:${crypto.randomUUID()}`,
  metadata: { timestamp, component: { 'bom-ref': 'sandboxd@1.0.0', name: folder, type: 'library' } },
  components: [component('koffi'), component('fastify', development), component('vitest', development)],
  dependencies: [
    { ref: 'sandboxd@1.0.0', dependsOn: ['koffi@1.0.0', 'fastify@1.0.0', 'vitest@1.0.0'] },
    { ref: 'vitest@1.0.0', dependsOn: [] },
  ],
});

it('a bill of materials tells what is installed and what is bundled, and is the same for the same commit', () => {
  const made = releaseBill(
    bill('here', '2026-02-03T00:00:00Z'),
    'sandboxd',
    new Set(['fastify@1.0.0']),
    COMMIT,
  );
  const again = releaseBill(
    bill('there', '2027-01-01T00:00:00Z'),
    'sandboxd',
    new Set(['fastify@1.0.0']),
    COMMIT,
  );
  expect(again).toEqual(made);
  expect(made.serialNumber).toMatch(
    /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
  expect(made.metadata).toMatchObject({
    timestamp: '2026-01-01T00:00:00.000Z',
    component: { name: 'sandboxd', type: 'application' },
  });
  expect(made.components.map(({ name }) => name)).toEqual(['koffi', 'fastify']);
  expect(made.components[1]?.properties).toEqual([{ name: 'cdx:npm:package:bundled', value: 'true' }]);
  expect(made.dependencies).toEqual([{ ref: 'sandboxd@1.0.0', dependsOn: ['koffi@1.0.0', 'fastify@1.0.0'] }]);
  const other = releaseBill(bill('here', ''), 'sandboxd', new Set(), { ...COMMIT, hash: 'another' });
  expect(other.serialNumber).not.toBe(made.serialNumber);
});

it('a bundled package that the lockfile does not hold is refused by name', () => {
  const bundled = new Set(['left-behind@2.0.0', 'koffi@1.0.0']);
  expect(() => releaseBill(bill('here', ''), 'sandboxd', bundled, COMMIT)).toThrow(
    'not in the lockfile: left-behind@2.0.0',
  );
});

it('the packages of a bundle are read from its licences', () => {
  const rule = '-'.repeat(78);
  const text = `Apache\n\n${rule}\n\nkoffi 3.3.4 (MIT)\n\nMIT\n\n${rule}\n\n@scope/name 1.0.0-rc.1 (see below)\n\n1 2 (3)\n`;
  expect(packagesIn(text)).toEqual(['koffi@3.3.4', '@scope/name@1.0.0-rc.1']);
});
