/** What a request on the control socket may reach; each scope includes the ones before it. */
export const CONTROL_SCOPES = ['read', 'write', 'manage'] as const;

export type ControlScope = (typeof CONTROL_SCOPES)[number];

/** Names the scope of a request on the control socket; without it only what needs no token is served. */
export const CONTROL_SCOPE_HEADER = 'x-control-scope';
