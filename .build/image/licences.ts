import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A package that is part of the image. */
export interface Package {
  name: string;
  version: string;
  licence: string;
  /** Its licence and notice files. */
  texts: string[];
}

/** The packages that these module paths belong to, sorted by name. */
export function packagesOf(modules: string[]): Package[] {
  const folders = modules.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  return [...new Set(folders)].map(readPackage).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Reads a package from its folder. Throws if it says nothing about its licence. */
export function readPackage(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim());
  if (texts.length === 0 && !license) throw new Error(`${name} has no licence`);
  return { name, version, licence: license ?? 'see below', texts };
}

/** One text with all licences, the project's own first. */
export function licenceText(root: string, packages: Package[]): string {
  const own = join(root, 'LICENSE');
  const first = existsSync(own) ? [readFileSync(own, 'utf8').trim()] : [];
  const rest = packages.map(({ name, version, licence, texts }) =>
    [`${name} ${version} (${licence})`, ...texts].join('\n\n'),
  );
  return `${[...first, ...rest].join(`\n\n${'-'.repeat(78)}\n\n`)}\n`;
}
