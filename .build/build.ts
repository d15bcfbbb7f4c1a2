import { chmodSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type OutputChunk, type Plugin } from 'rolldown';
import { NO_SIGUSR1, NODE_FLAGS } from '../src/base/engine/flags.ts';
import { EVENT_MODULES } from './event-modules.ts';
import { ascii } from './image/ascii.ts';
import { deferredModules } from './image/deferred.ts';
import { licenceText, packagesOf } from './image/licences.ts';
import { withoutOptionals } from './image/optionals.ts';
import { COMPILERS, nativeProgram } from './native/compile.ts';
import { glibcCheck } from './old-glibc.ts';

const SOURCES = fileURLToPath(new URL('../src', import.meta.url));

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
  { 'hand-over-reader': 'src/outbox/sqlite/undelivered/hand-over-reader.ts' },
  { 'meter-thread': 'src/network/meter/meter-thread.ts' },
];

/** What others import, each with its formats. The client and the events run in any JavaScript, in browsers as well. */
const LIBRARIES: {
  input: Record<string, string>;
  formats: ('esm' | 'cjs')[];
  platform: 'neutral' | 'node';
}[] = [
  { input: { client: 'src/client/client.ts' }, formats: ['esm'], platform: 'neutral' },
  { input: { events: 'src/receiver/events.ts' }, formats: ['esm', 'cjs'], platform: 'neutral' },
  { input: { signature: 'src/webhook/signature.ts' }, formats: ['esm', 'cjs'], platform: 'node' },
];

/** Puts the kinds and schemas of events into their bundle as they are. */
const eventModules: Plugin = {
  name: 'event-modules',
  load(id) {
    const code = EVENT_MODULES[relative(SOURCES, id)];
    return code === undefined ? null : { code, moduleType: 'ts' };
  },
};

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
    plugins: [separateOptions, withoutOptionals, ...(is_small ? [deferredModules, inAscii] : [])],
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
for (const { input, formats, platform } of LIBRARIES) {
  for (const format of formats) {
    const entryFileNames = `[name].${format === 'esm' ? 'mjs' : 'cjs'}`;
    const output = { dir: 'dist', format, entryFileNames, cleanDir: false };
    modules.push(
      ...modulesOf(await build({ input, platform, plugins: [eventModules], logLevel: 'warn', output })),
    );
  }
}
writeFileSync('dist/LICENSES', licenceText('.', packagesOf(modules)));
for (const arch of Object.keys(COMPILERS)) {
  writeFileSync(`dist/launcher-${arch}`, nativeProgram('launcher', arch));
  chmodSync(`dist/launcher-${arch}`, 0o755);
}
for (const name of PROGRAMS) {
  const flags = name === 'sandbox-manager' ? [NO_SIGUSR1] : NODE_FLAGS;
  const entry = readFileSync('.build/entry.cjs', 'utf8')
    .replaceAll('@NODE_FLAGS@', flags.join(' '))
    .replace('@GLIBC_CHECK@', () => glibcCheck('$(basename "$0" .cjs)'));
  writeFileSync(`dist/${name}.cjs`, entry);
  chmodSync(`dist/${name}.cjs`, 0o755);
  if (!existsSync(COMMANDS)) continue;
  rmSync(`${COMMANDS}/${name}`, { force: true });
  symlinkSync(`../../dist/${name}.cjs`, `${COMMANDS}/${name}`);
}
