/**
 * The catalogue of errors that cross a boundary: stable code, HTTP status and a default message that holds for both
 * programs. Contract section 4, "Error codes", and section 7, "Errors of the manager".
 */
const catalogue = {
  invalid_request: [400, 'The request is invalid.'],
  unauthorized: [401, 'A valid control token is required.'],
  forbidden: [403, 'This request is not allowed.'],
  permission_denied: [403, 'The account has no rights to this file or directory.'],
  not_found: [404, 'Not found.'],
  method_not_allowed: [405, 'This path does not support this method.'],
  timeout: [408, 'Timed out.'],
  conflict: [409, 'The request conflicts with the current state.'],
  webhook_not_configured: [409, 'No webhook is configured for this sandbox.'],
  is_a_directory: [409, 'This is a directory.'],
  not_a_directory: [409, 'This is not a directory.'],
  not_a_file: [409, 'This is neither a file nor a directory: devices, pipes and sockets are never opened.'],
  already_exists: [409, 'This already exists.'],
  directory_not_empty: [409, 'The directory is not empty.'],
  gone: [410, 'The requested data is no longer available.'],
  precondition_failed: [412, 'The file does not fulfil the condition of the request.'],
  payload_too_large: [413, 'The request body is larger than 1 MiB.'],
  unsupported_media_type: [415, 'The body must be application/json.'],
  range_not_satisfiable: [416, 'The range begins behind the end of the file.'],
  too_many_requests: [429, 'Too many requests.'],
  quota_exceeded: [429, "The team's quota is exceeded."],
  internal_error: [500, 'An internal error occurred.'],
  not_implemented: [501, 'This is not implemented.'],
  daemon_too_old: [501, "The sandbox's daemon is too old for this request."],
  bad_gateway: [502, 'The server in the sandbox does not answer.'],
  outbox_full: [503, 'The outbox is full.'],
  outbox_unavailable: [503, 'The outbox is temporarily unavailable.'],
  unavailable: [503, 'A required service is temporarily unavailable.'],
  capacity_exhausted: [503, 'The node has no capacity for this sandbox.'],
  shutting_down: [503, 'The server is shutting down.'],
  no_space: [507, 'There is no space left on the disk.'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

/** A stable error code of the catalogue. */
export type ErrorCode = keyof typeof catalogue;

/** Every code of the catalogue. */
export const ERROR_CODES = Object.keys(catalogue) as ErrorCode[];

/** What makes traces, in engines that let their length be set. */
const traces = Error as { stackTraceLimit?: number | undefined };

/**
 * An error of the catalogue, as the caller sees it. Without `message` the catalogue's own is used. `details` must be
 * free of secrets.
 */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly details: unknown;

  constructor(code: ErrorCode, message?: string, details?: unknown) {
    // Many may be made in a second, a trace takes as long as a whole answer, and the caller gets none.
    const { stackTraceLimit } = traces;
    traces.stackTraceLimit = 0;
    super(message ?? catalogue[code][1]);
    traces.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.code = code;
    this.status = catalogue[code][0];
    this.details = details;
  }
}

/** The JSON envelope of an error; `details` is left out where there are none. Contract section 4, "The local API". */
export function errorBody({ code, message, details }: ApiError) {
  return { success: false, error: { code, message, ...(details === undefined ? {} : { details }) } };
}

/** What is wrong with a field: its path, such as `config.ttl`, and the problem in words, such as "is required". */
export interface Problem {
  field: string;
  problem: string;
}

/** An `invalid_request` (400) about one field: the message is `field: problem`, `details` is `{field}`. */
export class FieldError extends ApiError implements Problem {
  readonly field: string;
  readonly problem: string;

  constructor({ field, problem }: Problem) {
    super('invalid_request', `${field}: ${problem}`, { field });
    this.field = field;
    this.problem = problem;
  }
}

/** The error for one invalid field, such as `invalidField('limit', 'must be an integer')`. */
export function invalidField(field: string, problem: string): FieldError {
  return new FieldError({ field, problem });
}

/** The error of a request to discard a record that is still to be sent. */
export function stillPending(): ApiError {
  return new ApiError('conflict', 'The record is pending: it is still to be sent.');
}

/** A start that cannot succeed. The message is the one line that the user sees; exit code 1, or 2 for invalid options. */
export class StartError extends Error {
  readonly exit_code: number;

  constructor(message: string, exit_code = 1, cause?: unknown) {
    super(message, { cause });
    this.name = 'StartError';
    this.exit_code = exit_code;
  }
}

/** A StartError about one option, with exit code 2. `field` is the option, such as `--port`; the message begins with it. */
export class OptionError extends StartError implements Problem {
  readonly field: string;
  readonly problem: string;

  constructor({ field, problem }: Problem, cause?: unknown) {
    super(`${field} ${problem}`, 2, cause);
    this.field = field;
    this.problem = problem;
  }
}
