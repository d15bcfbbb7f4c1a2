import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { cachePath, wrapped } from './loader.ts';

/**
 * Rewrites the recorded caches of a tree. A recorded cache numbers functions in the order of their first call, which
 * varies; a rewritten one numbers them in the order in which they are stored.
 */
const [folder = ''] = process.argv.slice(2);
for (const name of readdirSync(folder).filter((each) => /\..*\.cjs$/.test(each))) {
  const filename = join(folder, name);
  const script = new Script(wrapped(filename), {
    filename: name,
    cachedData: readFileSync(cachePath(filename)),
  });
  if (script.cachedDataRejected) throw new Error(`the cache of ${name} does not fit`);
  writeFileSync(cachePath(filename), script.createCachedData());
}
