import { Store, useStore } from './store.ts';

/** A place of the page, from the part of its URL behind `#`: servers, logs and `Referer` never see it. */
export interface Route {
  /** The decoded parts of the path: `['sandboxes', 'sbx_…', 'files']`. */
  segments: string[];
  query: URLSearchParams;
}

/** Values for a query; null, undefined and '' leave a key out. */
export type QueryValues = Record<string, string | number | readonly string[] | null | undefined>;

const current = new Store<Route>(parse(location.hash));

addEventListener('hashchange', () => current.set(parse(location.hash)));

function parse(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const segments = path.split('/').filter((each) => each !== '');
  return { segments: segments.map(decoded), query: new URLSearchParams(query) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** The present place. */
export function useRoute(): Route {
  return useStore(current);
}

/** A link to a place, for `href`. */
export function linkTo(segments: readonly string[], query: QueryValues = {}): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const each of [value ?? []].flat()) if (each !== '') search.append(key, String(each));
  }
  const text = search.toString();
  return `#/${segments.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`;
}

/** Goes to a place; `replace` leaves no step for the browser's back button. */
export function goTo(link: string, { replace = false } = {}): void {
  if (link === location.hash) return;
  if (replace) {
    history.replaceState(null, '', link);
    current.set(parse(link));
  } else location.hash = link;
}

/** Changes parts of the present place's query, and keeps the rest. */
export function setQuery(changes: QueryValues, options?: { replace?: boolean }): void {
  const { segments, query } = current.value;
  const kept: QueryValues = {};
  for (const key of new Set(query.keys())) kept[key] = query.getAll(key);
  goTo(linkTo(segments, { ...kept, ...changes }), options);
}

/** What of a query is given: a key that is missing, or empty, is left out. */
export function given<Values extends Record<string, unknown>>(
  values: Values,
): { [Key in keyof Values]?: Exclude<Values[Key], null> } {
  const kept = Object.entries(values).filter(([, value]) => value !== null && value !== '');
  return Object.fromEntries(kept) as { [Key in keyof Values]?: Exclude<Values[Key], null> };
}
