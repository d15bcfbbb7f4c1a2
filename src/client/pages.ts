import { SandboxdError } from './error.ts';

/** A page of a list; `next_cursor` is null at the end, and absent where a server knows no pages. */
export interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

/**
 * The items of a list from a cursor on, page by page, as they are asked for. Throws `bad_answer` where a page is none, or
 * leads to itself: it may come from a hostile sandbox.
 */
export async function* cursorPages<Item>(
  first: string | undefined,
  read: (cursor: string | undefined) => Promise<Page<Item>>,
): AsyncGenerator<Item, void> {
  for (let cursor: string | null | undefined = first; cursor !== null; ) {
    const page: Page<Item> = await read(cursor);
    const next = page.next_cursor ?? null;
    if (!Array.isArray(page.items) || next === cursor) {
      throw new SandboxdError({ code: 'bad_answer', message: 'the list has an invalid page', status: 200 });
    }
    yield* page.items;
    cursor = next;
  }
}
