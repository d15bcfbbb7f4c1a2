/** What a bearer token may allow. Contract section 7, "Bearer tokens". */
export const SCOPES = [
  'sandboxes:read',
  'sandboxes:write',
  'quota:read',
  'usage:read',
  'webhooks:read',
  'admin',
] as const;

/** One of `SCOPES`. */
export type Scope = (typeof SCOPES)[number];

/** Whether scopes include one; writing includes reading. */
export function includesTokenScope(scopes: readonly Scope[], scope: Scope): boolean {
  return scopes.includes(scope) || (scope === 'sandboxes:read' && scopes.includes('sandboxes:write'));
}

/** The form of a team's id, as messages describe it. */
export const TEAM_ID_SHAPE = '1 to 128 of A-Z a-z 0-9 _ - . :';

/** Whether a text is a valid team id, as `TEAM_ID_SHAPE` describes it. */
export function isTeamId(text: string): boolean {
  return /^[A-Za-z0-9_.:-]{1,128}$/.test(text);
}

/** The authenticated caller of a request. `actor` is the token's id. */
export interface Caller {
  actor: string;
  team_id: string;
  scopes: readonly Scope[];
  /** A call from behind the external gateway, which has charged the request already. */
  is_internal: boolean;
}
