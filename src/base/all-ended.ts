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
