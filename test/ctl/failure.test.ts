import { expect, it } from 'vitest';
import { EXIT, Failure, reason } from '../../src/ctl/failure.ts';

it('says the reason of a system error in words, and otherwise its code or message', () => {
  expect(reason(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))).toBe('connection refused');
  expect(reason(Object.assign(new Error('strange'), { code: 'EPROTO' }))).toBe('EPROTO');
  expect(reason(new Error('no answer within 30 s'))).toBe('no answer within 30 s');
});

it('carries an exit code', () => {
  expect(new Failure(EXIT.unreachable, 'away')).toMatchObject({ exit_code: 3, message: 'away' });
});
