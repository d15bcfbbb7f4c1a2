/**
 * What a request on the control socket may reach, weakest first; each scope includes the ones before it.
 * Contract section 4, "The control socket".
 */
export const CONTROL_SCOPES = ['read', 'write', 'manage'] as const;

/** One of `CONTROL_SCOPES`. */
export type ControlScope = (typeof CONTROL_SCOPES)[number];

/**
 * The request header, in lower case, that names the scope of a request on the control socket. Without it only routes
 * that require no token are served. Contract section 4, "The control socket".
 */
export const CONTROL_SCOPE_HEADER = 'x-control-scope';
