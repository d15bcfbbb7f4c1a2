import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type OutputChunk, type Plugin } from 'rolldown';
import { ascii } from './ascii.ts';
import { deferredModules } from './deferred.ts';
import { withoutOptionals } from './optionals.ts';

/** The loader of the image, which is put before every program. */
const LOADER = './.build/image/loader.ts';

const ENTRY = 'bin/sandboxd.ts';

/** The programs and their sources. The daemon's entry runs before its parts are loaded, so that it hides secrets. */
const PROGRAMS: { name: string; source: string; is_entry?: true }[] = [
  { name: 'sandboxd', source: ENTRY, is_entry: true },
  { name: 'sandboxctl', source: 'bin/sandboxctl.ts' },
  { name: 'writer-thread', source: 'src/outbox/sqlite/writer-thread.ts' },
  { name: 'watch-thread', source: 'src/watch/thread/watch-thread.ts' },
  { name: 'file-thread', source: 'src/files/thread/file-thread.ts' },
  { name: 'account-program', source: 'src/daemon/api/files/account-program.ts' },
  { name: 'keeper', source: 'src/runtime/kubernetes/keeper/keeper-program.ts' },
  { name: 'root', source: 'src/runtime/kubernetes/root/root-program.ts' },
  { name: 'hand-over-reader', source: 'src/outbox/sqlite/undelivered/hand-over-reader.ts' },
];

const OWN = '\0image:';

/** Adapts libraries to the image: addons are loaded from the folder of the programs. */
function imageLibraries(root: string, arch: string): Plugin {
  const modules = `${root}/node_modules`;
  const sources: Record<string, string> = {
    'better-sqlite3': `export { default } from '${modules}/better-sqlite3/lib/linux-${arch}.js'`,
    koffi: "export { default } from 'addon:koffi.node'",
    '@lydell/node-pty/requireBinary.js':
      "import terminals from 'addon:pty.node'; export const requireBinary = () => terminals",
  };
  return {
    name: 'image-libraries',
    resolveId(id) {
      if (id.startsWith('addon:')) return { id, external: true };
      if (id.endsWith('.node')) return { id: 'addon:sqlite.node', external: true };
      return id in sources ? OWN + id : null;
    },
    load: (id) => (id.startsWith(OWN) ? sources[id.slice(OWN.length)] : null),
  };
}

/** Chunks of their own, so that no part of a program must load its entry, which starts it. */
const APART = [{ name: 'deferred', test: /^\0deferred:/ }];

async function bundle(root: string, name: string, source: string, arch: string): Promise<OutputChunk[]> {
  const { output } = await build({
    cwd: root,
    input: { [name]: source },
    platform: 'node',
    plugins: [imageLibraries(root, arch), withoutOptionals, deferredModules],
    logLevel: 'warn',
    write: false,
    output: {
      format: 'cjs',
      minify: true,
      comments: { legal: false },
      entryFileNames: '[name].cjs',
      chunkFileNames: `${name}.[name].cjs`,
      ...(source === ENTRY ? { codeSplitting: { groups: APART } } : {}),
    },
  });
  return output.filter((file): file is OutputChunk => file.type === 'chunk');
}

/** Bundles every program of the project at `root` into `folder`, for `arch`; returns the paths of all their modules. */
export async function bundlePrograms(root: string, folder: string, arch: string): Promise<string[]> {
  const [loader] = await bundle(root, 'loader', LOADER, arch);
  const prelude =
    `"use strict";const{ProgramLoader}=(function(){const exports={};${ascii(loader?.code ?? '')};return exports})();` +
    'const image=new ProgramLoader(__dirname,require);';
  const modules: string[] = [];
  for (const { name, source, is_entry } of PROGRAMS) {
    const entry = is_entry ? name : `${name}.program`;
    const chunks = await bundle(root, entry, source, arch);
    for (const { fileName, code, moduleIds } of chunks) {
      modules.push(...moduleIds);
      const text = ascii(code.replace(/^#!.*/, ''));
      const is_wrapped = fileName === `${name}.cjs`;
      writeFileSync(
        join(folder, fileName),
        is_wrapped
          ? `${prelude}image.define(${JSON.stringify(fileName)},module);(function(require){${text}\n})(image.require);`
          : text,
      );
    }
    if (!is_entry) writeFileSync(join(folder, `${name}.cjs`), `${prelude}image.require("./${entry}.cjs");\n`);
  }
  return modules;
}
