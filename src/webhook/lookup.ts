import type { LookupAddress, LookupOptions } from 'node:dns';
import type { Clock } from '../base/clock.ts';
import type { AddressGuard } from './address-guard.ts';
import { ADDRESS_BLOCKED } from './attempt-error.ts';
import { platformResolve, type Resolve } from './resolver.ts';

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/**
 * The daemon's resolver, which uses none of its threads and opens no file itself; loaded with the first name, which
 * webhooks by address never have.
 */
export function directResolve(clock: Clock): Resolve {
  let made: Promise<Resolve> | null = null;
  return async (hostname) => {
    made ??= import('./direct-resolver.ts').then(({ makeDirectResolve }) => makeDirectResolve(clock));
    return (await made)(hostname);
  };
}

/**
 * Name resolution for connections, with at most one look-up per name at a time: the platform resolves on the few
 * threads that file operations use too, and a resolver that hangs must not occupy all of them.
 */
export class SharedLookup {
  readonly #guard: AddressGuard | null;
  readonly #resolve: Resolve;
  readonly #waiting = new Map<string, LookupCallback[]>();

  /** With a guard, only the addresses that it allows are returned: the address that is checked is the one dialled. */
  constructor(guard: AddressGuard | null = null, resolve: Resolve = platformResolve) {
    this.#guard = guard;
    this.#resolve = resolve;
  }

  /** Whether a URL's host must not be dialled: addresses are dialled without a look-up. */
  refusesLiteral(hostname: string): boolean {
    return this.#guard?.refusesLiteral(hostname) ?? false;
  }

  /** Whether a look-up of the name is under way. */
  isPending(hostname: string): boolean {
    return this.#waiting.has(hostname);
  }

  /** Resolves a name, in the form of `dns.lookup`. Fails with `EBLOCKED` where the guard allows no address. */
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
    void this.#resolve(hostname).then(
      (addresses) => {
        const allowed = this.#allowed(addresses);
        this.#answer(hostname, allowed.length === 0 ? blockedError(hostname) : null, allowed);
      },
      (error) => this.#answer(hostname, error, []),
    );
  };

  #answer(hostname: string, error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
    const answers = this.#waiting.get(hostname) ?? [];
    this.#waiting.delete(hostname);
    for (const each of answers) each(error, addresses);
  }

  #allowed(addresses: LookupAddress[]): LookupAddress[] {
    const guard = this.#guard;
    return guard ? addresses.filter(({ address }) => guard.allows(address)) : addresses;
  }
}

function blockedError(hostname: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${hostname} resolves only to blocked addresses`), {
    code: ADDRESS_BLOCKED,
  });
}
