import type { Plugin } from 'rolldown';

/** Modules of Node that are slow to load and not used during the start. */
const DEFERRED = [
  ...['child_process', 'crypto', 'dgram', 'dns', 'dns/promises', 'fs/promises', 'http2', 'https'],
  ...['os', 'timers/promises', 'tty', 'v8', 'worker_threads', 'zlib'],
];
const OWN = '\0deferred:';

/**
 * Puts in the place of each of these modules one that loads it when a member is first asked for. Members are found by way
 * of its prototype: code that imports a module copies those that it has itself, and would load it for that.
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
  const code = `let real;
    const get = (_, name) => (real ??= require('${id}'))[name];
    module.exports = Object.create(new Proxy({}, { get }));`;
  return { code, moduleType: 'js' };
}
