/** Programs of different versions that work together: a sandbox's image may be older or newer than its manager. Contract section 4, "Versions". */

/** What daemons have learned since the first version of this major number: a manager asks for it before it uses it. */
export const FEATURES = ['discard_deliveries', 'switch_without_memory', 'webhook_retry'] as const;

/** One of `FEATURES`. */
export type Feature = (typeof FEATURES)[number];

/** Whether two versions have the same major number. */
export function isSameMajor(left: string, right: string): boolean {
  return majorOf(left) === majorOf(right);
}

function majorOf(version: string): string {
  return version.split('.')[0] as string;
}
