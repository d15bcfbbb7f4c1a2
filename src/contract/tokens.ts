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

/** Whoever makes a request. `actor` is the token's id. */
export interface Caller {
  actor: string;
  team_id: string;
  scopes: readonly Scope[];
  /** Behind the external gateway: what was charged there is not charged again. */
  is_internal: boolean;
}
