/** How grave a finding is, the gravest last. Source: contract section 4, `sandboxctl doctor`. */
export const LEVELS = ['ok', 'warning', 'error'] as const;

export type Level = (typeof LEVELS)[number];

/** What one check came to; the message is one line for a person. */
export interface Finding {
  name: string;
  level: Level;
  message: string;
}

export const ok = (name: string, message: string): Finding => ({ name, level: 'ok', message });
export const warning = (name: string, message: string): Finding => ({ name, level: 'warning', message });
export const error = (name: string, message: string): Finding => ({ name, level: 'error', message });

/** The exit code: 0, 1 or 2 by the worst. */
export function worst(findings: Finding[]): number {
  return Math.max(0, ...findings.map(({ level }) => LEVELS.indexOf(level)));
}
