import { Store } from './store.ts';

/** Which program serves the page: a manager, or `sandboxctl` for one daemon, which holds the token itself. */
export type Program = 'manager' | 'daemon';

const KEY = 'sandboxd-token';

/** The program that serves the page; null until it has said so. */
export const program = new Store<Program | null>(null);

/**
 * The bearer token of a manager's team: in memory and nowhere else, or until the tab is closed in `sessionStorage` if its
 * user asks for that. Null: nobody has signed in.
 */
export const token = new Store<string | null>(sessionStorage.getItem(KEY));

/** Why the token is asked for again; null where it is not. */
export const refusal = new Store<string | null>(null);

/** Uses a token from now on. */
export function signIn(value: string, is_kept: boolean): void {
  if (is_kept) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
  refusal.set(null);
  token.set(value);
}

/** Forgets the token; what is shown of the team goes with the page. */
export function signOut(): void {
  sessionStorage.removeItem(KEY);
  location.hash = '';
  location.reload();
}
