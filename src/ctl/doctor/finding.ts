/** How severe a finding is, least severe first. Contract section 4, "`sandboxctl`". */
export const LEVELS = ['ok', 'warning', 'error'] as const;

/** One of `LEVELS`. */
export type Level = (typeof LEVELS)[number];

/** The result of one check; the message is one line for the user. */
export interface Finding {
  name: string;
  level: Level;
  message: string;
}

/** A check that passed. */
export const ok = (name: string, message: string): Finding => ({ name, level: 'ok', message });
/** A check that found a possible problem. */
export const warning = (name: string, message: string): Finding => ({ name, level: 'warning', message });
/** A check that failed. */
export const error = (name: string, message: string): Finding => ({ name, level: 'error', message });

/** The exit code: 0, 1 or 2 by the most severe finding. */
export function worst(findings: Finding[]): number {
  return Math.max(0, ...findings.map(({ level }) => LEVELS.indexOf(level)));
}
