import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { VERSION } from '../../src/base/version.ts';
import { nativeProgram } from '../native/compile.ts';
import { writeCodeCaches } from './code-cache.ts';
import { launcher } from './launcher.ts';
import { licenceText, type Package, packagesOf, readPackage } from './licences.ts';
import { bundlePrograms } from './programs.ts';
import { removeSymbols } from './symbols.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
/**
 * Node is executable but not readable for others: the kernel then protects the memory of programs run from it against
 * other processes of the same user. A builder who is not root keeps the right to read it, in order to copy it.
 */
const NODE_MODE = process.getuid?.() === 0 ? 0o111 : 0o511;
const COMMANDS = ['sandboxd', 'sandboxctl'];
/** What the kernel starts in the library. */
const PROGRAMS = ['node', 'init'];

/** For whom an image is built. */
export interface ImageTarget {
  /** As Node names it: `x64` or `arm64`. */
  arch: string;
  /** The `node_modules` that holds the packages with native code for it. */
  packages: string;
}

const OWN_TARGET: ImageTarget = { arch: process.arch, packages: `${ROOT}/node_modules` };

/**
 * Creates the tree that is copied onto `/` of a sandbox's image: a Node of its own, the programs, the addons, the
 * licences, and a manifest of versions and checksums. `image` is the folder to create; an existing one is replaced. The
 * same commit gives the same bytes. Only a Node that runs here can make V8's code caches: the image of another
 * architecture has none, and its first start takes longer.
 */
export async function buildImage(image: string, target = OWN_TARGET): Promise<void> {
  const { arch } = target;
  const library = join(image, 'usr/local/lib/sandboxd');
  const commands = join(image, 'usr/local/bin');
  rmSync(image, { recursive: true, force: true });
  for (const folder of [library, commands]) mkdirSync(folder, { recursive: true });
  const node = join(library, 'node');
  copyFileSync(join(nodePackage(target), 'bin/node'), node);
  removeSymbols(node);
  chmodSync(node, 0o755);
  const terminals = `${target.packages}/@lydell/node-pty-linux-${arch}`;
  const calls = `${target.packages}/@koromix/koffi-linux-${arch}`;
  copyFileSync(
    `${target.packages}/better-sqlite3/prebuilds/linux-${arch}.node`,
    join(library, 'sqlite.node'),
  );
  copyFileSync(`${terminals}/pty.node`, join(library, 'pty.node'));
  copyFileSync(`${calls}/linux_${arch}/koffi.node`, join(library, 'koffi.node'));
  const modules = await bundlePrograms(ROOT, library, arch);
  if (arch === process.arch) await writeCodeCaches(library, node);
  const packages = packagesOf([
    ...modules,
    `${nodePackage(target)}/`,
    `${terminals}/`,
    `${ROOT}/node_modules/koffi/`,
  ]);
  writeFileSync(join(library, 'LICENSES'), licenceText(ROOT, packages));
  for (const name of COMMANDS) writeFileSync(join(commands, name), launcher(name, arch), { mode: 0o755 });
  writeFileSync(join(library, 'init'), nativeProgram('init', arch));
  writeFileSync(join(library, launcherOf(arch)), nativeProgram('launcher', arch));
  for (const name of readdirSync(library))
    chmodSync(join(library, name), [...PROGRAMS, launcherOf(arch)].includes(name) ? 0o755 : 0o644);
  for (const name of COMMANDS) chmodSync(join(commands, name), 0o755);
  writeFileSync(join(library, 'manifest.json'), manifest(image, packages, target), { mode: 0o644 });
  chmodSync(node, NODE_MODE);
}

/** The name by which the programs find what starts others: `src/base/linux/launcher.c`. */
function launcherOf(arch: string): string {
  return `launcher-${arch}`;
}

function nodePackage({ arch, packages }: ImageTarget): string {
  return `${packages}/node-linux-${arch}`;
}

/** The manifest: all versions, and the size and SHA-256 of each file but the manifest itself. */
function manifest(image: string, packages: Package[], target: ImageTarget): string {
  const files = filesOf(image).map((path) => {
    const bytes = readFileSync(join(image, path));
    return [
      `/${path}`,
      { size_bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') },
    ];
  });
  const text = {
    name: 'sandboxd',
    version: VERSION,
    platform: `linux-${target.arch}`,
    libc: 'glibc',
    node: readPackage(nodePackage(target)).version,
    packages: Object.fromEntries(packages.map(({ name, version }) => [name, version])),
    files: Object.fromEntries(files),
  };
  return `${JSON.stringify(text, null, 2)}\n`;
}

function filesOf(image: string, folder = ''): string[] {
  return readdirSync(join(image, folder))
    .sort()
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(join(image, path)).isDirectory() ? filesOf(image, path) : [path]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const image = process.argv[2] ?? join(ROOT, 'dist/image');
  if (!existsSync(nodePackage(OWN_TARGET))) throw new Error(`linux-${process.arch} is not supported`);
  await buildImage(image);
  console.log(`${image}: copy it onto / of the image`);
}
