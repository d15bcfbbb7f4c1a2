import { readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { systemClock } from '../../src/base/clock.ts';
import { cachePath, ProgramLoader, wrapped } from './loader.ts';

/** Time after the last answer, in ms, until its consequences have run, undici's slow timers included. */
const REST_MS = 1_500;

/**
 * Runs the daemon of a tree in this process until it gets a message. Then it writes a code cache of every part that was
 * loaded, with the functions that were called, and of every other part as compiled without running it.
 */
const [folder = '', ...args] = process.argv.slice(2);
const loader = new ProgramLoader(folder, createRequire(import.meta.url));
const { runSandboxd } = loader.require('./sandboxd.sandboxd-options.cjs') as {
  runSandboxd: (argv: string[], secret: undefined, environment: object) => Promise<void>;
};
process.once('message', () => systemClock.after(REST_MS, writeCaches));
void runSandboxd(['node', 'sandboxd', ...args], undefined, {});

function writeCaches(): void {
  for (const name of readdirSync(folder).filter((each) => /\..*\.cjs$/.test(each))) {
    const filename = join(folder, name);
    const script = loader.scripts.get(name) ?? new Script(wrapped(filename), { filename: name });
    writeFileSync(cachePath(filename), script.createCachedData());
  }
  process.exit(0);
}
