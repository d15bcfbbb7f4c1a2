import { readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { systemClock } from '../../src/base/clock.ts';
import { cachePath, ProgramLoader, wrapped } from './loader.ts';

/** So long until what the last answer set off is done, the slow timers of the delivery's library included. */
const REST_MS = 1_500;

/**
 * Runs the daemon of a tree in this process until it is told to write: then keeps the compiled form of every part that
 * was loaded, as far as its functions were called, and of every other part as it is before it runs.
 */
const [folder = '', ...args] = process.argv.slice(2);
const loader = new ProgramLoader(folder, createRequire(import.meta.url));
const { main } = loader.require('./sandboxd.sandboxd-options.cjs') as {
  main: (argv: string[], secret: undefined, environment: object) => Promise<void>;
};
process.once('message', () => systemClock.after(REST_MS, writeCaches));
void main(['node', 'sandboxd', ...args], undefined, {});

function writeCaches(): void {
  for (const name of readdirSync(folder).filter((each) => /\..*\.cjs$/.test(each))) {
    const filename = join(folder, name);
    const script = loader.scripts.get(name) ?? new Script(wrapped(filename), { filename: name });
    writeFileSync(cachePath(filename), script.createCachedData());
  }
  process.exit(0);
}
