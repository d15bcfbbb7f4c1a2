import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';

const ADDON = 'addon:';

/** Node's own `require`. */
export type NativeRequire = (id: string) => unknown;

interface Loaded {
  exports: unknown;
}

/**
 * Loads the parts of a bundled program with the code caches made when the image was built. A cache that does not fit this
 * engine is ignored: the part is compiled again, which is slower and changes nothing else.
 */
export class ProgramLoader {
  readonly #folder: string;
  readonly #native: NativeRequire;
  readonly #loaded = new Map<string, Loaded>();
  /** The compiled parts by file name, from which the caches are made. */
  readonly scripts = new Map<string, Script>();

  constructor(folder: string, native: NativeRequire) {
    this.#folder = folder;
    this.#native = native;
  }

  /** A part of the program (`./name.cjs`), an addon (`addon:name`) or a module of the platform. */
  readonly require = (id: string): unknown => {
    if (id.startsWith('./')) return this.#part(id.slice(2));
    if (id.startsWith(ADDON)) return this.#addon(id.slice(ADDON.length));
    return this.#native(id);
  };

  /** Makes known a part that runs already: what other parts use of the entry must not start the program again. */
  define(name: string, module: Loaded): void {
    this.#loaded.set(name, module);
  }

  #part(name: string): unknown {
    const known = this.#loaded.get(name);
    if (known) return known.exports;
    const filename = join(this.#folder, name);
    const module: Loaded = { exports: {} };
    this.#loaded.set(name, module);
    const cache = cachePath(filename);
    const script = new Script(wrapped(filename), {
      // Without the folder: a cache contains the name and must be the same wherever the image is built.
      filename: name,
      ...(existsSync(cache) ? { cachedData: readFileSync(cache) } : {}),
    });
    this.scripts.set(name, script);
    script.runInThisContext()(module.exports, this.require, module, filename, dirname(filename));
    return module.exports;
  }

  #addon(name: string): unknown {
    const path = join(this.#folder, name);
    try {
      return this.#native(path);
    } catch (error) {
      const [reason] = (error as Error).message.split('\n');
      throw new Error(
        existsSync(path) ? `the addon cannot be loaded: ${reason}` : `the addon ${path} is missing`,
      );
    }
  }
}

/** The source of a part, wrapped in a CommonJS module function. */
export function wrapped(filename: string): string {
  // Bundles contain only ASCII; read as latin1 they take half the memory.
  return `(function(exports,require,module,__filename,__dirname){${readFileSync(filename, 'latin1')}\n})`;
}

/** The path of a part's code cache. */
export function cachePath(filename: string): string {
  return filename.replace(/\.cjs$/, '.cache');
}
