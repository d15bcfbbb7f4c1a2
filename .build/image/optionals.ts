import type { Plugin } from 'rolldown';

/** Packages that a library loads if they are installed, and otherwise does without. */
const OPTIONAL = ['bufferutil', 'utf-8-validate'];
const MISSING = '\0missing:';

/**
 * Leaves optional packages out of a bundle. A program would otherwise look for them in every folder above its own and in
 * the home directory, where another user may have put them.
 */
export const withoutOptionals: Plugin = {
  name: 'without-optionals',
  resolveId: (id) => (OPTIONAL.includes(id) ? MISSING + id : null),
  load: (id) =>
    id.startsWith(MISSING)
      ? `module.exports = (() => { throw new Error('${id.slice(MISSING.length)} is left out'); })();`
      : null,
};
