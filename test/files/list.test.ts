import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { UploadJournal } from '../../src/files/change/upload-journal.ts';
import { Files } from '../../src/files/files.ts';
import { scratchFolder } from '../support/scratch.ts';

const name = fc.stringMatching(/^[a-b!\-.0é]{1,3}$/).filter((text) => text !== '.' && text !== '..');
const tree = fc.array(fc.array(name, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 25 });

test('pages of any size list every path to the depth once, in the order of their bytes', async () => {
  const files = new Files({ clock: systemClock, own_paths: [], journal: new UploadJournal('') });
  await fc.assert(
    fc.asyncProperty(
      tree,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 7 }),
      async (paths, depth, limit) => {
        const root = scratchFolder();
        const expected = new Set<string>();
        for (const names of paths) {
          try {
            mkdirSync(join(root, ...names.slice(0, -1)), { recursive: true });
            writeFileSync(join(root, ...names), '');
          } catch {
            continue; // Another path has made it a file, or a directory.
          }
          for (let i = 1; i <= Math.min(depth, names.length); i++)
            expected.add(join(root, ...names.slice(0, i)));
        }
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await files.list({ path: root, depth, limit, cursor });
          expect(page.entries.length).toBeLessThanOrEqual(limit);
          found.push(...page.entries.map((entry) => entry.path));
          cursor = page.next_cursor ?? undefined;
        } while (cursor !== undefined);
        const bytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other));
        expect(found).toEqual([...expected].sort(bytes));
      },
    ),
    { numRuns: 60 },
  );
});
