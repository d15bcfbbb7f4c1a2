import { vi } from 'vitest';

/** As long as a test may take: what waits for a condition fails by the test's own time, not by a busy machine's. */
const TIMEOUT_MS = 100_000;

/** Repeats a check until it no longer throws, and resolves to its result. `options`: within how many ms, and how often. */
export function eventually<Result>(
  check: () => Result | Promise<Result>,
  options: number | { timeout?: number; interval?: number } = {},
): Promise<Result> {
  const given = typeof options === 'number' ? { timeout: options } : options;
  return vi.waitFor(check, { timeout: TIMEOUT_MS, ...given });
}
