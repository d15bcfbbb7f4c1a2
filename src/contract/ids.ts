/** The forms of ids and names, which are checked before anything is asked for them. */

/** Whether a text has the form of a managed sandbox's id: `sbx_` and a UUID. */
export function isSandboxId(text: string): boolean {
  return /^sbx_[0-9a-f-]{36}$/.test(text);
}

/** Matches a valid template name. */
export const TEMPLATE = /^[A-Za-z0-9_.-]{1,64}$/;

/** The form of a team's id, as messages describe it. */
export const TEAM_ID_SHAPE = '1 to 128 of A-Z a-z 0-9 _ - . :';

/** Whether a text is a valid team id, as `TEAM_ID_SHAPE` describes it. */
export function isTeamId(text: string): boolean {
  return /^[A-Za-z0-9_.:-]{1,128}$/.test(text);
}
