/**
 * The one catalogue of errors that cross a boundary: stable code, HTTP status and a default message.
 * Source: contract section 4, "Error codes", and section 7, below the table of routes.
 */
const catalogue = {
  invalid_request: [400, 'The request is not valid.'],
  unauthorized: [401, 'A valid control token is required.'],
  forbidden: [403, 'This request is not allowed.'],
  not_found: [404, 'There is no such thing.'],
  method_not_allowed: [405, 'This path does not take this method.'],
  timeout: [408, 'The time to wait is over.'],
  conflict: [409, 'The request conflicts with the present state.'],
  webhook_not_configured: [409, 'No webhook is configured for this sandbox.'],
  gone: [410, 'What was asked for is no longer kept.'],
  payload_too_large: [413, 'The request body is larger than 1 MiB.'],
  unsupported_media_type: [415, 'The body must be application/json.'],
  too_many_requests: [429, 'Too many requests.'],
  quota_exceeded: [429, "The team's quota does not admit this."],
  internal_error: [500, 'Something went wrong inside the daemon.'],
  outbox_full: [503, 'The outbox is full.'],
  outbox_unavailable: [503, 'The outbox cannot be written at present.'],
  unavailable: [503, 'What this needs cannot be reached at present.'],
  capacity_exhausted: [503, 'There is no room for another sandbox at present.'],
  shutting_down: [503, 'The daemon is shutting down.'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type ErrorCode = keyof typeof catalogue;

/** An error from the catalogue: what a caller is told. `details` must be safe to show and free of secrets. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: unknown;

  constructor(code: ErrorCode, message?: string, details?: unknown) {
    super(message ?? catalogue[code][1]);
    this.name = 'ApiError';
    this.code = code;
    this.status = catalogue[code][0];
    this.details = details;
  }
}

/** The envelope of an error. Source: contract section 4, "The local API". */
export function errorBody({ code, message, details }: ApiError) {
  return { success: false, error: { code, message, ...(details === undefined ? {} : { details }) } };
}

/** A 400 that names the field at fault: `details` is `{field}`. */
export function invalidField(field: string, message: string): ApiError {
  return new ApiError('invalid_request', `${field}: ${message}`, { field });
}

/** A start that cannot succeed: the message is the one line that a user sees. Exit code 1, or 2 for bad options. */
export class StartError extends Error {
  readonly exit_code: number;

  constructor(message: string, exit_code = 1, cause?: unknown) {
    super(message, { cause });
    this.name = 'StartError';
    this.exit_code = exit_code;
  }
}
