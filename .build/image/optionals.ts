import type { Plugin } from 'rolldown';

/** Packages that a library loads if they are installed, and otherwise does without. */
const OPTIONAL = ['bufferutil', 'utf-8-validate'];
const LEFT_OUT = '\0left-out:';

/**
 * What libraries load and the programs do without, instead of which these modules are bundled. An optional package would
 * be looked for in every folder above the program and in the home directory, where another user may have put one. pino's
 * transports, loaded at each start, write from a thread of their own; logs go to stderr.
 */
const SOURCES: Record<string, string> = {
  package: "module.exports = (() => { throw new Error('this package is left out'); })();",
  transport: "module.exports = () => { throw new Error('transports are left out'); };",
};

/** Leaves out of a bundle what its programs do without. */
export const withoutOptionals: Plugin = {
  name: 'without-optionals',
  resolveId(id, importer = '') {
    if (OPTIONAL.includes(id)) return `${LEFT_OUT}package`;
    const is_transport = /\/transport(\.js)?$/.test(id) && importer.includes('/node_modules/pino/');
    return is_transport ? `${LEFT_OUT}transport` : null;
  },
  load: (id) => (id.startsWith(LEFT_OUT) ? (SOURCES[id.slice(LEFT_OUT.length)] ?? null) : null),
};
