import { chmodSync, copyFileSync, existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { build, type OutputChunk, type Plugin } from 'rolldown';
import { ascii } from './image/ascii.ts';
import { licenceText, packagesOf } from './image/licences.ts';
import { withoutOptionals } from './image/optionals.ts';

/** The programs that users run, bundled into `dist/`. Packages with native code stay outside the bundles. */
const PROGRAMS = ['sandboxd', 'sandboxctl', 'sandbox-manager'];
/** Where npm puts the commands of packages: `npx sandboxctl` then never asks a registry. */
const COMMANDS = 'node_modules/.bin';

/** Keeps a program's `*-options.ts` in a bundle of its own: the entry does its first work before loading it. */
const separateOptions: Plugin = {
  name: 'separate-options',
  resolveId(id, importer) {
    const name = /\/(\w[\w-]*-options)\.ts$/.exec(id)?.[1];
    return name && importer ? { id: `./${name}.cjs`, external: true } : null;
  },
};

const inAscii: Plugin = {
  name: 'in-ascii',
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) if (file.type === 'chunk') file.code = ascii(file.code);
  },
};

/** What runs in every sandbox is as small as in images, and shares no file with the much larger manager. */
const SMALL_BUNDLES: Record<string, string>[] = [
  { 'sandboxd-program': 'bin/sandboxd.ts' },
  { 'sandboxd-options': 'bin/sandboxd-options.ts', 'sandboxctl-program': 'bin/sandboxctl.ts' },
  { 'writer-thread': 'src/outbox/sqlite/writer-thread.ts' },
  { 'watch-thread': 'src/watch/thread/watch-thread.ts' },
  { 'file-thread': 'src/files/thread/file-thread.ts' },
  { 'account-program': 'src/daemon/api/files/account-program.ts' },
];

const BUNDLES: Record<string, string>[] = [
  ...SMALL_BUNDLES,
  { 'sandbox-manager-program': 'bin/sandbox-manager.ts' },
  { 'sandbox-manager-options': 'bin/sandbox-manager-options.ts' },
  { events: 'src/contract/events.ts', signature: 'src/webhook/signature.ts' },
  { 'hand-over-reader': 'src/outbox/sqlite/undelivered/hand-over-reader.ts' },
  { 'meter-thread': 'src/network/meter/meter-thread.ts' },
];

/** What others import: it runs in any JavaScript, in a browser as well. */
const LIBRARIES: Record<string, string>[] = [{ client: 'src/client/client.ts' }];

rmSync('dist', { recursive: true, force: true });
const modules: string[] = [];
const modulesOf = ({ output }: { output: ({ type: string } | OutputChunk)[] }) =>
  output.flatMap((file) => ('moduleIds' in file ? file.moduleIds : []));
for (const input of BUNDLES) {
  const is_small = SMALL_BUNDLES.includes(input);
  const bundle = await build({
    input,
    platform: 'node',
    external: ['better-sqlite3', 'koffi', '@lydell/node-pty', 'pg-native'],
    plugins: [separateOptions, withoutOptionals, ...(is_small ? [inAscii] : [])],
    logLevel: 'warn',
    output: {
      dir: 'dist',
      ...(is_small ? { minify: true, comments: { legal: false } } : {}),
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      cleanDir: false,
      dynamicImportInCjs: false,
    },
  });
  modules.push(...modulesOf(bundle));
}
for (const input of LIBRARIES) {
  const output = { dir: 'dist', format: 'esm', entryFileNames: '[name].mjs', cleanDir: false } as const;
  modules.push(...modulesOf(await build({ input, platform: 'neutral', logLevel: 'warn', output })));
}
writeFileSync('dist/LICENSES', licenceText('.', packagesOf(modules)));
for (const name of PROGRAMS) {
  copyFileSync('.build/entry.cjs', `dist/${name}.cjs`);
  chmodSync(`dist/${name}.cjs`, 0o755);
  if (!existsSync(COMMANDS)) continue;
  rmSync(`${COMMANDS}/${name}`, { force: true });
  symlinkSync(`../../dist/${name}.cjs`, `${COMMANDS}/${name}`);
}
