/** A page of a list; `next_cursor` is null at the end. */
export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

/** The items of a list from a cursor on, page by page, as they are asked for. */
export async function* cursorPages<Item>(
  first: string | undefined,
  read: (cursor: string | undefined) => Promise<Page<Item>>,
): AsyncGenerator<Item, void> {
  for (let cursor: string | null | undefined = first; cursor !== null; ) {
    const page: Page<Item> = await read(cursor);
    yield* page.items;
    cursor = page.next_cursor;
  }
}
