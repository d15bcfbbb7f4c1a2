import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';

/** Node's own modules that are costly to load and not needed before something happens. */
const DEFERRED = /^(node:)?(v8|crypto|child_process|worker_threads|zlib|dns|dns\/promises|https|http2)$/;
const ADDON = 'addon:';

/** What a module of the platform is loaded with. */
export type NativeRequire = (id: string) => unknown;

interface Loaded {
  exports: unknown;
}

/**
 * Loads the parts of a bundled program with what the compiler made of them when the image was built. A part's cache
 * that does not fit this engine is left aside: the part is compiled anew, which takes longer and changes nothing.
 */
export class ProgramLoader {
  readonly #folder: string;
  readonly #native: NativeRequire;
  readonly #loaded = new Map<string, Loaded>();
  /** By file name, for whoever makes the caches. */
  readonly scripts = new Map<string, Script>();

  constructor(folder: string, native: NativeRequire) {
    this.#folder = folder;
    this.#native = native;
  }

  /** A part of the program (`./name.cjs`), an addon (`addon:name`) or a module of the platform. */
  readonly require = (id: string): unknown => {
    if (id.startsWith('./')) return this.#part(id.slice(2));
    if (id.startsWith(ADDON)) return this.#addon(id.slice(ADDON.length));
    return DEFERRED.test(id) ? deferred(() => this.#native(id) as object) : this.#native(id);
  };

  #part(name: string): unknown {
    const known = this.#loaded.get(name);
    if (known) return known.exports;
    const filename = join(this.#folder, name);
    const module: Loaded = { exports: {} };
    this.#loaded.set(name, module);
    const cache = cachePath(filename);
    const script = new Script(wrapped(filename), {
      // Without the folder: a cache holds it, and is to be the same wherever the image is made.
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

/** A part's text as the function that a module is. */
export function wrapped(filename: string): string {
  // Bundles hold no character beyond ASCII: as such they take half the memory.
  return `(function(exports,require,module,__filename,__dirname){${readFileSync(filename, 'latin1')}\n})`;
}

/** Where the compiled form of a part is kept. */
export function cachePath(filename: string): string {
  return filename.replace(/\.cjs$/, '.cache');
}

/** Stands for a module that is loaded when something of it is first used. */
function deferred(load: () => object): object {
  let real: object | null = null;
  const module = () => {
    real ??= load();
    return real;
  };
  return new Proxy(
    {},
    {
      get: (_, key) => Reflect.get(module(), key),
      has: (_, key) => Reflect.has(module(), key),
      ownKeys: () => Reflect.ownKeys(module()),
      getOwnPropertyDescriptor: (_, key) => {
        const found = Reflect.getOwnPropertyDescriptor(module(), key);
        return found && { ...found, configurable: true };
      },
    },
  );
}
