import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { systemClock } from '../../src/base/clock.ts';
import { cachePath, ProgramLoader } from './loader.ts';

/** Time after the last answer, in ms, until its consequences have run, undici's slow timers included. */
const REST_MS = 1_500;

/**
 * Runs the daemon of a tree in this process until it gets a message. Then it writes a code cache of every part that was
 * loaded, with the functions that were called.
 */
const [folder = '', ...args] = process.argv.slice(2);
const loader = new ProgramLoader(folder, createRequire(import.meta.url));
const { runSandboxd } = loader.require('./sandboxd.sandboxd-options.cjs') as {
  runSandboxd: (argv: string[], secret: undefined, environment: object) => Promise<void>;
};
process.once('message', () => systemClock.after(REST_MS, writeCaches));
void runSandboxd(['node', 'sandboxd', ...args], undefined, {});

function writeCaches(): void {
  for (const [name, script] of loader.scripts) {
    writeFileSync(cachePath(join(folder, name)), script.createCachedData());
  }
  process.exit(0);
}
