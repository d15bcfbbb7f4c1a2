import { chmodSync, rmSync } from 'node:fs';
import { build, type Plugin } from 'rolldown';
import { withoutOptionals } from './image/optionals.ts';

/**
 * Bundles each program into `dist/`: what users run. Only better-sqlite3 and the terminal library stay outside,
 * because they hold native code.
 */
const PROGRAMS = ['sandboxd', 'sandboxctl', 'sandbox-manager'];

/** An entry does its first work before anything else is loaded, so that it is bundled by itself. */
const separateOptions: Plugin = {
  name: 'separate-options',
  resolveId(id, importer) {
    const name = /\/(\w[\w-]*-options)\.ts$/.exec(id)?.[1];
    return name && importer ? { id: `./${name}.cjs`, external: true } : null;
  },
};

const BUNDLES: Record<string, string>[] = [
  { sandboxd: 'bin/sandboxd.ts' },
  // The daemon starts in every sandbox: it shares no file with the manager, which holds much more.
  { 'sandboxd-options': 'bin/sandboxd-options.ts', sandboxctl: 'bin/sandboxctl.ts' },
  { 'sandbox-manager': 'bin/sandbox-manager.ts' },
  { 'sandbox-manager-options': 'bin/sandbox-manager-options.ts' },
  { 'writer-thread': 'src/outbox/sqlite/writer-thread.ts' },
  { 'hand-over-reader': 'src/outbox/sqlite/undelivered/hand-over-reader.ts' },
  { 'watch-thread': 'src/watch/thread/watch-thread.ts' },
];

rmSync('dist', { recursive: true, force: true });
for (const input of BUNDLES) {
  await build({
    input,
    platform: 'node',
    external: ['better-sqlite3', '@lydell/node-pty', 'pg-native'],
    plugins: [separateOptions, withoutOptionals],
    logLevel: 'warn',
    output: {
      dir: 'dist',
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      cleanDir: false,
      dynamicImportInCjs: false,
    },
  });
}
for (const name of PROGRAMS) chmodSync(`dist/${name}.cjs`, 0o755);
