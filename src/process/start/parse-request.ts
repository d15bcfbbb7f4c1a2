import { problemOf } from '../../base/schema.ts';
import { FieldError, invalidField } from '../../contract/errors.ts';
import { ProcessBody, type ProcessRequest } from '../../contract/processes.ts';

/** Throws `invalid_request`, which names the field, for what the schema of a request cannot express. */
export function checkProcessRequest({ command, shell, ready }: ProcessRequest): void {
  if ((command === undefined) === (shell === undefined)) {
    throw invalidField('command', 'exactly one of command and shell is required');
  }
  if (command?.[0] === '') throw invalidField('command', 'must begin with a program');
  if (ready && (ready.port === undefined) === (ready.log === undefined)) {
    throw invalidField('ready', 'exactly one of port and log is required');
  }
}

/**
 * Checks a whole request, such as one that was stored. Throws `invalid_request`, which names the field. Whether the
 * command can be started shows only when it is. Source: contract section 4, row POST `/processes`.
 */
export function parseProcessRequest(value: unknown): ProcessRequest {
  const wrong = problemOf(ProcessBody, value);
  if (wrong) throw new FieldError({ ...wrong, field: wrong.field || 'body' });
  const request = value as ProcessRequest;
  checkProcessRequest(request);
  return request;
}
