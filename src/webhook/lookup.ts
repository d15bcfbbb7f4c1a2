import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/**
 * Name resolution for connections, at most one look-up per name at a time: the platform resolves on the few threads
 * that files need too, and a resolver that hangs must not take all of them.
 */
export class SharedLookup {
  readonly #waiting = new Map<string, LookupCallback[]>();

  /** True while the name is being resolved. */
  isPending(hostname: string): boolean {
    return this.#waiting.has(hostname);
  }

  readonly lookup = (hostname: string, options: LookupOptions, done: LookupCallback): void => {
    const answer: LookupCallback = options.all
      ? done
      : (error, addresses) => {
          const first = error ? undefined : (addresses as LookupAddress[])[0];
          done(error, first?.address ?? '', first?.family);
        };
    const waiting = this.#waiting.get(hostname);
    if (waiting) {
      waiting.push(answer);
      return;
    }
    this.#waiting.set(hostname, [answer]);
    systemLookup(hostname, { all: true }, (error, addresses) => {
      const answers = this.#waiting.get(hostname) ?? [];
      this.#waiting.delete(hostname);
      for (const each of answers) each(error, addresses);
    });
  };
}
