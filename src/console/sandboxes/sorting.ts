import type { ManagedSandbox } from '../api/managed-sandbox.ts';

const KEYS = {
  id: ({ id }: ManagedSandbox) => id,
  status: ({ status }: ManagedSandbox) => status,
  template: ({ template_id }: ManagedSandbox) => template_id,
  expires: ({ expires_at }: ManagedSandbox) => expires_at ?? '9',
  created: ({ created_at }: ManagedSandbox) => created_at,
};

/** In which order a page of sandboxes is shown; the pages themselves are newest first. */
export interface Sorting {
  by: keyof typeof KEYS;
  is_descending: boolean;
}

/** The order that a link names: `created`, or `-created` from the last. */
export function sortingOf(text: string | null): Sorting {
  const [, minus = '', by = ''] = /^(-?)(\w+)$/.exec(text ?? '') ?? [];
  if (!Object.hasOwn(KEYS, by)) return { by: 'created', is_descending: true };
  return { by: by as Sorting['by'], is_descending: minus === '-' };
}

/** The sandboxes of a page in an order. */
export function sorted(page: readonly ManagedSandbox[], { by, is_descending }: Sorting): ManagedSandbox[] {
  const key = KEYS[by];
  const rising = page.toSorted((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
  return is_descending ? rising.reverse() : rising;
}
