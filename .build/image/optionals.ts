import type { Plugin } from 'rolldown';

/** Packages that a library tries to load and does without. */
const OPTIONAL = ['bufferutil', 'utf-8-validate'];
const MISSING = '\0missing:';

/**
 * Leaves out what libraries load where it happens to be installed: a program would look for it in every folder above
 * its own and in the home directory, where somebody else may have put it.
 */
export const withoutOptionals: Plugin = {
  name: 'without-optionals',
  resolveId: (id) => (OPTIONAL.includes(id) ? MISSING + id : null),
  load: (id) =>
    id.startsWith(MISSING)
      ? `module.exports = (() => { throw new Error('${id.slice(MISSING.length)} is left out'); })();`
      : null,
};
