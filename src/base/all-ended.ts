/**
 * What all of these come to, once each has ended in one way or the other: nothing goes on behind the back of whoever
 * gives up. Throws the first failure in their order.
 */
export async function allEnded<const T extends readonly unknown[]>(
  steps: T,
): Promise<{ -readonly [Index in keyof T]: Awaited<T[Index]> }> {
  await Promise.allSettled(steps);
  return Promise.all(steps);
}
