import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { systemErrorText, systemErrorWords } from '../../../src/base/linux/errno.ts';
import { freePort } from '../../support/free-port.ts';

it('says what a system error means, and where it happened', async () => {
  const port = await freePort();
  const refused = await new Promise((resolve) => connect(port, '127.0.0.1').once('error', resolve));
  const text = `connection refused (ECONNREFUSED 127.0.0.1:${port})`;
  expect(systemErrorText(refused)).toBe(text);
  expect(systemErrorText(new AggregateError([refused, new Error('of another address')]))).toBe(text);
  const of_name = Object.assign(new Error(), { code: 'ENOTFOUND', hostname: 'no.invalid' });
  expect(systemErrorText(of_name)).toBe('no such host (ENOTFOUND no.invalid)');
  const of_six = Object.assign(new Error(), { code: 'ENETUNREACH', address: '2001:db8::1', port: 5432 });
  expect(systemErrorText(of_six)).toBe('no route to the network (ENETUNREACH [2001:db8::1]:5432)');
});

it('has nothing to say of any other error', () => {
  expect([new Error('x'), new AggregateError([]), null].map(systemErrorText)).toEqual([null, null, null]);
  expect([undefined, 'ERR_X', 'toString'].map(systemErrorWords)).toEqual([null, null, null]);
});
