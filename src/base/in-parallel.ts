/** Does something for every item, some at a time; rejects with the first error once all of them have been tried. */
export async function inParallel<Item>(
  items: readonly Item[],
  at_once: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const errors: unknown[] = [];
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const item = items[next++] as Item;
      await work(item).catch((error: unknown) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(at_once, items.length) }, lane));
  if (errors.length > 0) throw errors[0];
}
