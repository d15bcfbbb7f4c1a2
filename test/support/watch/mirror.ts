import type { FileModified } from '../../../src/contract/events.ts';

/**
 * A consumer that keeps a copy by the events alone: it applies them in order and reads a file when it is told that
 * it is new or was written. An event that cannot be true is an error.
 */
export class Mirror {
  readonly #content = new Map<string, string | null>();
  readonly #read: (path: string) => string | null;

  constructor(paths: string[], read: (path: string) => string | null) {
    this.#read = read;
    for (const path of paths) this.#content.set(path, read(path));
  }

  apply(event: FileModified): void {
    const { event_type, path, old_path = '' } = event;
    if (event_type !== 'create') this.#mustKnow(event_type === 'rename' ? old_path : path, event);
    if (event_type === 'create' || event_type === 'write') this.#content.set(path, this.#read(path));
    if (event_type === 'remove') this.#remove(path);
    if (event_type === 'rename') this.#rename(old_path, path);
  }

  has(path: string): boolean {
    return this.#content.has(path);
  }

  entries(): [string, string | null][] {
    return [...this.#content].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  #mustKnow(path: string, event: FileModified): void {
    if (!this.#content.has(path)) throw new Error(`not true: ${JSON.stringify(event)}`);
  }

  #below(path: string): string[] {
    return [...this.#content.keys()].filter((other) => other.startsWith(`${path}/`));
  }

  #remove(path: string): void {
    for (const gone of [path, ...this.#below(path)]) this.#content.delete(gone);
  }

  #rename(old_path: string, path: string): void {
    const moved = [old_path, ...this.#below(old_path)].map(
      (from) => [path + from.slice(old_path.length), this.#content.get(from) ?? null] as const,
    );
    this.#remove(old_path);
    this.#remove(path);
    // What was gone before it could be read is read where it went.
    for (const [to, content] of moved) this.#content.set(to, content ?? this.#read(to));
  }
}
