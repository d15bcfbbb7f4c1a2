import { describe, expect, it } from 'vitest';
import { ATTEMPT_ERRORS } from '../../src/contract/words.ts';
import { ConnectError } from '../../src/webhook/attempt-error.ts';
import { authorityOf, connectErrorOf, proxyStatusOf } from '../../src/webhook/connect-method.ts';

describe('the target of a CONNECT request', () => {
  it.each([
    ['http://consumer.example/hook?a=1', 'consumer.example:80'],
    ['https://CONSUMER.example', 'consumer.example:443'],
    ['https://consumer.example:8443/', 'consumer.example:8443'],
    ['http://[2001:DB8::1]/', '[2001:db8::1]:80'],
    ['http://0x7f.1:81/', '127.0.0.1:81'],
  ])('of %s is its host and port', (url, authority) => {
    expect(authorityOf(new URL(url))).toBe(authority);
  });

  it('is the same from an address without brackets and without its port', () => {
    expect(authorityOf({ protocol: 'https:', hostname: '2001:db8::1', port: '' })).toBe('[2001:db8::1]:443');
  });
});

describe('why a CONNECT request failed', () => {
  it.each(ATTEMPT_ERRORS)('is told and understood: %s', (error) => {
    const told = proxyStatusOf(new ConnectError(error, 'the "name" ü\\🦊\ud800 100 %'));
    expect(told).toMatch(/^[ -~]+$/);
    expect(connectErrorOf(told)).toMatchObject({
      attempt_error: error,
      detail: 'the "name" ü\\🦊\ufffd 100 %',
    });
  });

  it.each([
    undefined,
    '',
    'other; error=dns_error; details=""',
    'sandbox-manager; error=constructor; details=""',
    ['a', 'b'],
  ])('is "connect" if %j is all that is told', (header) => {
    expect(connectErrorOf(header)).toMatchObject({
      attempt_error: 'connect',
      detail: 'the manager could not connect',
    });
  });

  it('is one line, whatever is told', () => {
    const told = (details: string) =>
      connectErrorOf(`sandbox-manager; error=dns_error; details="${details}"`);
    expect(told('a%0Ab').detail).toBe('a b');
    expect(told('a%0Ab%').detail).toBe('a%0Ab%');
  });
});
