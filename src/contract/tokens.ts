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

/** The authenticated caller of a request. `actor` is the token's id. */
export interface Caller {
  actor: string;
  team_id: string;
  scopes: readonly Scope[];
  /** A call from behind the external gateway, which has charged the request already. */
  is_internal: boolean;
}
