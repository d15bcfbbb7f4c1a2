import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../src/contract/errors.ts';
import { parseFrame } from '../../../src/daemon/api/attach-frame.ts';

const parsed = (frame: unknown) => parseFrame(Buffer.from(JSON.stringify(frame)), false);

/** The field that a refusal names. */
function refusedField(data: Buffer | string, is_binary = false): unknown {
  try {
    parseFrame(Buffer.from(data), is_binary);
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 'invalid_request' });
    return ((error as ApiError).details as { field?: string }).field;
  }
  return 'accepted';
}

describe('a frame from an attached client', () => {
  it('of stdin carries any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(parsed({ type: 'stdin', data: text })).toEqual({ type: 'stdin', data: Buffer.from(text) });
      }),
    );
  });

  it('of stdin carries any bytes as base64', () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const data = Buffer.from(bytes);
        const frame = { type: 'stdin', data: data.toString('base64'), encoding: 'base64' };
        expect(parsed(frame)).toEqual({ type: 'stdin', data });
      }),
    );
  });

  it('resizes the terminal', () => {
    expect(parsed({ type: 'resize', cols: 80, rows: 24 })).toEqual({
      type: 'resize',
      size: { cols: 80, rows: 24 },
    });
  });

  it('signals the process', () => {
    expect(parsed({ type: 'signal', signal: 'SIGINT' })).toEqual({ type: 'signal', signal: 'SIGINT' });
  });

  it.each<[string, unknown]>([
    ['type', {}],
    ['type', { type: 'close' }],
    ['type', { type: 'constructor' }],
    ['type', { type: ['stdin'] }],
    ['data', { type: 'stdin' }],
    ['data', { type: 'stdin', data: 1 }],
    ['encoding', { type: 'stdin', data: 'YQ==', encoding: 'hex' }],
    ['data', { type: 'stdin', data: 'YQ', encoding: 'base64' }],
    ['data', { type: 'stdin', data: 'Y-Q=', encoding: 'base64' }],
    ['signal', { type: 'signal' }],
    ['signal', { type: 'signal', signal: 2 }],
    ['scope', { type: 'signal', signal: 'SIGINT', scope: 'group' }],
    ['frame', null],
    ['frame', []],
    ['frame', 'text'],
  ])('is refused by its field %s: %j', (field, frame) => {
    expect(refusedField(JSON.stringify(frame))).toBe(field);
  });

  it('is refused if its size is not one of a terminal', () => {
    for (const size of [
      {},
      { cols: 80 },
      { cols: 0, rows: 24 },
      { cols: 80.5, rows: 24 },
      { cols: '80', rows: 24 },
    ]) {
      expect(refusedField(JSON.stringify({ type: 'resize', ...size }))).toMatch(/resize|cols|rows/);
    }
  });

  it('is refused if it is binary, not UTF-8 or not JSON', () => {
    expect(refusedField('{"type":"stdin","data":""}', true)).toBe('frame');
    expect(refusedField(Buffer.from([0x22, 0xff, 0x22]))).toBe('frame');
    expect(refusedField('{"type":')).toBe('frame');
  });

  it('is understood or refused by a field, whatever it is', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        expect(refusedField(text)).toEqual(expect.any(String));
      }),
    );
  });
});
