/** What a bearer token allows. Source: contract section 7, "Bearer tokens". */
export const SCOPES = [
  'sandboxes:read',
  'sandboxes:write',
  'quota:read',
  'usage:read',
  'webhooks:read',
  'admin',
] as const;

export type Scope = (typeof SCOPES)[number];

/** What the id of a team may be, as a message says it. */
export const TEAM_ID_SHAPE = '1 to 128 of A-Z a-z 0-9 _ - . :';

export function isTeamId(text: string): boolean {
  return /^[A-Za-z0-9_.:-]{1,128}$/.test(text);
}

/** Whoever makes a request. `actor` is the token's id. */
export interface Caller {
  actor: string;
  team_id: string;
  scopes: readonly Scope[];
  /** Behind the external gateway: what was charged there is not charged again. */
  is_internal: boolean;
}
