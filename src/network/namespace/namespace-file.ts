import { existsSync, readdirSync, statfsSync } from 'node:fs';

/** The folder in which `ip` keeps named namespaces: each name is a file, over which the namespace is mounted. */
const FOLDER = '/run/netns';
/** The type of the file system that namespaces are files of. */
const NAMESPACE_FILES = 0x6e736673;

/** The path of the namespace with this name. */
export function namespacePath(name: string): string {
  return `${FOLDER}/${name}`;
}

/** The names that begin with `prefix`, also those without their namespace. */
export function namesBeginning(prefix: string): string[] {
  return existsSync(FOLDER) ? readdirSync(FOLDER).filter((name) => name.startsWith(prefix)) : [];
}

/** Whether a namespace is at this path. A name without its namespace is an empty file. */
export function isNamespace(path: string): boolean {
  return existsSync(path) && statfsSync(path).type === NAMESPACE_FILES;
}
