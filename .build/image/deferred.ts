import { createRequire } from 'node:module';
import type { Plugin } from 'rolldown';

/** Modules of Node that are slow to load and not used during the start. */
const DEFERRED = [
  ...['child_process', 'crypto', 'dgram', 'dns', 'dns/promises', 'fs/promises', 'http2', 'https'],
  ...['os', 'timers/promises', 'tty', 'v8', 'worker_threads', 'zlib'],
];
const OWN = '\0deferred:';

/**
 * Puts in the place of each of these modules one that loads it when a member is first used. It has the members of the
 * module in this Node, which is the one that comes with the programs: code that imports a module lists them, and would
 * load it for that.
 */
export const deferredModules: Plugin = {
  name: 'deferred-modules',
  resolveId(id, importer = '') {
    const name = id.replace(/^node:/, '');
    if (!DEFERRED.includes(name)) return null;
    return importer.startsWith(OWN) ? { id: `node:${name}`, external: true } : OWN + name;
  },
  load: (id) => (id.startsWith(OWN) ? standIn(`node:${id.slice(OWN.length)}`) : null),
};

function standIn(id: string): { code: string; moduleType: 'js' } {
  const members = Object.keys(createRequire(import.meta.url)(id));
  const code = `for (const name of ${JSON.stringify(members)})
    Object.defineProperty(exports, name, { enumerable: true, get: () => require('${id}')[name] });`;
  return { code, moduleType: 'js' };
}
