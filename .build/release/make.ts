import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import manifest from '../../package.json' with { type: 'json' };
import { buildImage } from '../image/build.ts';
import { archiveImage } from './archive.ts';
import { type Bill, packagesIn, releaseBill } from './bill.ts';

/**
 * Makes the files of a release from this checkout, whose `dist/` is built, into the folder of the first argument:
 * the package, an image tree for each architecture, the bill of materials, and their checksums.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const ARCHITECTURES = ['x64', 'arm64'];
/** What npm needs for an installation. */
const MANIFESTS = ['package.json', 'package-lock.json', '.npmrc', '.build/openapi-types/package.json'];

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 });
}

const git = (...args: string[]) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();

/** Installs what npm publishes for the architecture, checked by the lockfile; returns the `node_modules`. */
function foreignPackages(scratch: string, arch: string): string {
  const folder = join(scratch, arch);
  for (const path of MANIFESTS) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(ROOT, path), join(folder, path));
  }
  const target = ['--os=linux', `--cpu=${arch}`, '--libc=glibc'];
  npm(
    folder,
    'ci',
    '--omit=dev',
    '--ignore-scripts',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    ...target,
  );
  return join(folder, 'node_modules');
}

const folder = process.argv[2] ?? join(ROOT, 'dist/release');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const commit = { hash: git('rev-parse', 'HEAD'), time_s: Number(git('log', '-1', '--format=%ct')) };
process.env.SOURCE_DATE_EPOCH = String(commit.time_s);
const scratch = mkdtempSync(join(tmpdir(), 'sandboxd-release-'));
const release = `${manifest.name}-${manifest.version}`;
const bundled = new Set(
  ['dist/LICENSES', 'dist/console/LICENSES'].flatMap((path) =>
    packagesIn(readFileSync(join(ROOT, path), 'utf8')),
  ),
);
try {
  npm(ROOT, 'pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder);
  for (const arch of ARCHITECTURES) {
    const is_own = arch === process.arch;
    const packages = is_own ? join(ROOT, 'node_modules') : foreignPackages(scratch, arch);
    const image = join(scratch, 'image', arch);
    await buildImage(image, { arch, packages });
    if (!is_own)
      console.log(`image for ${arch}: without V8's code caches, which only a Node that runs here makes`);
    const licences = readFileSync(join(image, 'usr/local/lib/sandboxd/LICENSES'), 'utf8');
    for (const each of packagesIn(licences)) bundled.add(each);
    await archiveImage(image, join(folder, `${release}-linux-${arch}.tar.gz`), commit.time_s);
  }
} finally {
  rmSync(scratch, { recursive: true });
}
const all = npm(ROOT, 'sbom', '--sbom-format=cyclonedx', '--package-lock-only', '--workspaces=false');
const bill = releaseBill(JSON.parse(all) as Bill, manifest.name, bundled, commit);
writeFileSync(join(folder, `${release}.cdx.json`), `${JSON.stringify(bill, null, 2)}\n`);
const sums = readdirSync(folder)
  .sort()
  .map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  );
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''));
