import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { execaSync } from 'execa';

/** The checkout. */
export const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));

/** Installs the package into a folder, with what it depends on, as users get it: of the build that is there. */
export function installPackage(folder: string): void {
  const npm = (...args: string[]) => execaSync('npm', args, { cwd: CHECKOUT, stdin: 'ignore' }).stdout;
  const packed = npm('pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder);
  npm('install', '--prefix', folder, '--omit=dev', '--no-audit', '--no-fund', join(folder, packed));
}

/** The client of an installed package. */
export function installedClient(folder: string): Promise<typeof import('../../src/client/client.ts')> {
  return import(pathToFileURL(join(folder, 'node_modules/sandboxd/dist/client.mjs')).href);
}
