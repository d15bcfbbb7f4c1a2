import { fileURLToPath } from 'node:url';
import type { Plugin } from 'rolldown';

/** Packages that a library loads if they are installed, and otherwise does without. */
const OPTIONAL = ['bufferutil', 'supports-color', 'utf-8-validate'];
const OWN = '\0own-';
const UNDICI = fileURLToPath(new URL('../../node_modules/undici/lib', import.meta.url));

/**
 * What libraries load and the programs do without, instead of which these modules are bundled. An optional package would
 * be looked for in every folder above the program and in the home directory, where another user may have put one. pino's
 * transports, loaded at each start, write from a thread of their own; logs go to stderr, from main threads alone, so that
 * no threads need be loaded, and assertions, which undici has as well, are a line of our own. Of undici the HTTP/1.1 client
 * is used, with its first parser and with bodies of bytes, which is a fifth of it.
 */
const SOURCES: Record<string, string> = {
  package: "module.exports = (() => { throw new Error('this package is left out'); })();",
  assert: 'module.exports = (holds, problem) => { if (!holds) throw new Error(problem); };',
  'main-thread': 'module.exports = { isMainThread: true };',
  transport: "module.exports = () => { throw new Error('transports are left out'); };",
  'other-parser': "module.exports = (() => { throw new Error('this parser is left out'); })();",
  'other-bodies':
    "module.exports = (() => { throw new Error('bodies of forms and streams are left out'); })();",
  'http-2': "module.exports = () => { throw new Error('HTTP/2 is left out'); };",
  undici: `export { default as Pool } from '${UNDICI}/dispatcher/pool.js';
    export { default as Client } from '${UNDICI}/dispatcher/client.js';
    export { default as buildConnector } from '${UNDICI}/core/connect.js';`,
};

/** Leaves out of a bundle what its programs do without. */
export const withoutOptionals: Plugin = {
  name: 'without-optionals',
  resolveId(id, importer = '') {
    if (OPTIONAL.includes(id)) return `${OWN}package`;
    if (id === 'undici') return `${OWN}undici`;
    if (id.endsWith('/client-h2.js')) return `${OWN}http-2`;
    if (/\/milo\/[\w-]+(\.js)?$/.test(id)) return `${OWN}other-parser`;
    if (/\/web\/fetch\/(body|formdata)(\.js)?$/.test(id)) return `${OWN}other-bodies`;
    const asserts = /\/node_modules\/(sonic-boom|undici)\//.test(importer);
    if (asserts && /^(node:)?assert$/.test(id)) return `${OWN}assert`;
    if (id === 'worker_threads' && importer.includes('/node_modules/pino/')) return `${OWN}main-thread`;
    const is_transport = /\/transport(\.js)?$/.test(id) && importer.includes('/node_modules/pino/');
    return is_transport ? `${OWN}transport` : null;
  },
  load: (id) => (id.startsWith(OWN) ? (SOURCES[id.slice(OWN.length)] ?? null) : null),
};
