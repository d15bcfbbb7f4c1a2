import { describe, expect, it } from 'vitest';
import { ApiError, errorBody, invalidField, StartError } from '../../src/contract/errors.ts';

describe('the catalogue of errors', () => {
  it('gives each code its status and a message', () => {
    const { code, status, message } = new ApiError('timeout');
    expect([code, status, message]).toEqual(['timeout', 408, 'Timed out.']);
  });

  it('prefers the message that an error is given', () => {
    expect(new ApiError('not_found', 'No process p1.').message).toBe('No process p1.');
  });

  it('leaves out details where there are none', () => {
    expect(errorBody(new ApiError('gone', 'Gone.'))).toEqual({
      success: false,
      error: { code: 'gone', message: 'Gone.' },
    });
    expect(errorBody(new ApiError('gone', 'Gone.', { first: 7 }))).toMatchObject({
      error: { details: { first: 7 } },
    });
  });

  it('names an invalid field in the message and in the details', () => {
    const error = invalidField('limit', 'must be an integer');
    expect([error.status, error.message, error.details]).toEqual([
      400,
      'limit: must be an integer',
      { field: 'limit' },
    ]);
  });

  it('ends a start with exit code 1 unless another is given', () => {
    expect([new StartError('no').exit_code, new StartError('no', 2).exit_code]).toEqual([1, 2]);
  });
});
