type Libc = typeof import('./libc.ts');

let loaded: Promise<Libc | null> | null = null;

/** Loads the C library's calls, which are native code; null if the addon koffi cannot be loaded. It is tried once. */
export function loadLibc(): Promise<Libc | null> {
  loaded ??= import('./libc.ts').catch(() => null);
  return loaded;
}
