import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 20;

/** Waits until `look` gives something that counts as true, and returns it; throws at the deadline, saying `what`. */
export async function until<Found>(
  what: string,
  look: () => Found | Promise<Found>,
  within_ms = 20_000,
): Promise<NonNullable<Found>> {
  const end_ms = performance.now() + within_ms;
  let seen: unknown;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
      seen = found;
    } catch (error) {
      seen = error;
    }
    if (performance.now() > end_ms)
      throw new Error(`not within ${within_ms} ms: ${what} (last: ${String(seen)})`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** How long something took, with what it gave. */
export async function timed<Result>(
  work: () => Promise<Result>,
): Promise<{ result: Result; took_ms: number }> {
  const began_ms = performance.now();
  const result = await work();
  return { result, took_ms: performance.now() - began_ms };
}
