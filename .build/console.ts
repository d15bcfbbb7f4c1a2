import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { licenceText, packagesOf } from './image/licences.ts';

/** Builds the console's page into `dist/console/`, each file also compressed, so that no server does it at run time. */
const FOLDER = fileURLToPath(new URL('../dist/console', import.meta.url));
const COMPRESSED = new Set(['.html', '.js', '.css', '.svg']);

const built = await build({
  configFile: false,
  logLevel: 'warn',
  root: fileURLToPath(new URL('../src/console', import.meta.url)),
  // Any place may serve it: its links are relative.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: FOLDER,
    emptyOutDir: true,
    target: 'es2022',
    // Neither inline code nor data URLs pass the page's content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});

const outputs = [built].flat().flatMap((each) => ('output' in each ? each.output : []));
const modules = outputs.flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
writeFileSync(join(FOLDER, 'LICENSES'), licenceText('.', packagesOf(modules)));

for (const name of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
  if (!COMPRESSED.has(extname(name))) continue;
  const path = join(FOLDER, name);
  const plain = readFileSync(path);
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(`${path}.br`, brotliCompressSync(plain, { params: quality }));
  writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
}
