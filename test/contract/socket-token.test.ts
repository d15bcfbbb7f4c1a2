import fc from 'fast-check';
import { expect, it } from 'vitest';
import { offersSocketProtocol, socketProtocols, tokenOfProtocols } from '../../src/contract/socket-token.ts';

const token = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
});

it('every token comes back from its subprotocols, which are tokens of HTTP', () => {
  fc.assert(
    fc.property(token, fc.array(fc.constantFrom('chat', 'x.y')), (value, others) => {
      const offered = [...others, ...socketProtocols(value)];
      for (const each of offered) expect(each).toMatch(/^[A-Za-z0-9._-]+$/);
      expect(tokenOfProtocols(offered.join(', '))).toBe(value);
      expect(offersSocketProtocol(offered.join(','))).toBe(true);
    }),
  );
});

it('anything else is no token', () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const found = tokenOfProtocols(`sandboxd.bearer.${text}`);
      if (found !== null) expect(found).toMatch(/^[\x21-\x7e]+$/);
    }),
  );
  for (const header of [
    undefined,
    '',
    'sandboxd.v1',
    'sandboxd.bearer.',
    'sandboxd.bearer.A',
    'sandboxd.bearer.AA==',
  ]) {
    expect(tokenOfProtocols(header)).toBeNull();
  }
  expect(offersSocketProtocol('chat')).toBe(false);
});
