import { chmodSync, rmSync } from 'node:fs';
import { build, type Plugin } from 'rolldown';
import { withoutOptionals } from './image/optionals.ts';

/** The programs that users run, bundled into `dist/`. Packages with native code stay outside the bundles. */
const PROGRAMS = ['sandboxd', 'sandboxctl', 'sandbox-manager'];

/** Keeps a program's `*-options.ts` in a bundle of its own: the entry does its first work before loading it. */
const separateOptions: Plugin = {
  name: 'separate-options',
  resolveId(id, importer) {
    const name = /\/(\w[\w-]*-options)\.ts$/.exec(id)?.[1];
    return name && importer ? { id: `./${name}.cjs`, external: true } : null;
  },
};

const BUNDLES: Record<string, string>[] = [
  { sandboxd: 'bin/sandboxd.ts' },
  // The daemon starts in every sandbox, so it shares no file with the much larger manager.
  { 'sandboxd-options': 'bin/sandboxd-options.ts', sandboxctl: 'bin/sandboxctl.ts' },
  { 'sandbox-manager': 'bin/sandbox-manager.ts' },
  { 'sandbox-manager-options': 'bin/sandbox-manager-options.ts' },
  { 'writer-thread': 'src/outbox/sqlite/writer-thread.ts' },
  { 'hand-over-reader': 'src/outbox/sqlite/undelivered/hand-over-reader.ts' },
  { 'watch-thread': 'src/watch/thread/watch-thread.ts' },
  { 'meter-thread': 'src/network/meter/meter-thread.ts' },
];

rmSync('dist', { recursive: true, force: true });
for (const input of BUNDLES) {
  await build({
    input,
    platform: 'node',
    external: ['better-sqlite3', 'koffi', '@lydell/node-pty', 'pg-native'],
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
