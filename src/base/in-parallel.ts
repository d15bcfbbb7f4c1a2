/** Runs `work` for every item, at most `at_once` at a time. Throws the first error after all items have been tried. */
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

/**
 * Waits until every promise has settled, then returns their results, or throws the first failure in their order.
 * Unlike `Promise.all`, no work is still running when the caller sees a failure.
 */
export async function allEnded<const T extends readonly unknown[]>(
  steps: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  await Promise.allSettled(steps);
  return Promise.all(steps);
}
