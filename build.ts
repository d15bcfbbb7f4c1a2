import { chmodSync, rmSync } from 'node:fs';
import { build } from 'rolldown';

/**
 * Bundles each program into `dist/`: what users run. Only better-sqlite3 and the terminal library stay outside,
 * because they hold native code.
 */
const PROGRAMS = ['sandboxd', 'sandboxctl', 'sandbox-manager'];

rmSync('dist', { recursive: true, force: true });
for (const input of [
  // The daemon starts in every sandbox: it shares no file with the manager, which holds much more.
  Object.fromEntries(['sandboxd', 'sandboxctl'].map((name) => [name, `bin/${name}.ts`])),
  { 'sandbox-manager': 'bin/sandbox-manager.ts' },
  { 'writer-thread': 'src/outbox/writer-thread.ts' },
  { 'hand-over-reader': 'src/outbox/hand-over-reader.ts' },
  { 'watch-thread': 'src/watch/watch-thread.ts' },
]) {
  await build({
    input,
    platform: 'node',
    external: ['better-sqlite3', '@lydell/node-pty', 'pg-native'],
    logLevel: 'warn',
    output: {
      dir: 'dist',
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      cleanDir: false,
    },
  });
}
for (const name of PROGRAMS) chmodSync(`dist/${name}.cjs`, 0o755);
