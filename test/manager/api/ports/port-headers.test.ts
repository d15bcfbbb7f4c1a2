import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ownLocation } from '../../../../src/manager/api/ports/port-headers.ts';

const PREFIX = '/api/v1/sandboxes/sbx_1/ports/8000';
const PLACE = { port: 8000, prefix: PREFIX, host: 'manager.example:8080' };

describe('a Location of a server in a sandbox', () => {
  it.each([
    ['/login?next=%2F#top', `${PREFIX}/login?next=%2F#top`],
    ['next', `${PREFIX}/a/next`],
    ['?page=2', `${PREFIX}/a/b?page=2`],
    ['../../../..', `${PREFIX}/`],
    ['http://localhost:8000/x', `${PREFIX}/x`],
    ['http://127.0.0.1:8000//x', `${PREFIX}//x`],
    ['https://[::1]:8000/x', `${PREFIX}/x`],
    [`${PREFIX}/found`, `${PREFIX}/found`],
    [`https://manager.example:8080${PREFIX}/found`, `${PREFIX}/found`],
    ['', `${PREFIX}/a/b`],
  ])('%j leads to %s', (location, path) => {
    expect(ownLocation(location, '/a/b', PLACE)).toBe(path);
  });

  it.each([
    'http://localhost:8001/x',
    'http://localhost/x',
    'https://elsewhere.example/',
    '//elsewhere.example/x',
    '\\\\elsewhere.example/x',
    'http://manager.example:8080/api/v1/sandboxes/sbx_2/pause',
    `http://manager.example:8080${PREFIX}/../8001/x`,
    `http://elsewhere.example${PREFIX}/x`,
    'http://user:word@localhost:8000/',
    'javascript:alert(1)',
    'http://[',
  ])('%s leads nowhere', (location) => {
    expect(ownLocation(location, '/a/b', PLACE)).toBeNull();
  });

  it('never leads out of its port, whatever it is', () => {
    const pieces = fc.constantFrom(
      '/',
      '..',
      '.',
      '%2e%2e',
      '\\',
      '//',
      ':',
      '@',
      '?',
      '#',
      'a',
      'http:',
      PREFIX,
      'localhost:8000',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(pieces).map((parts) => parts.join('')),
        ),
        (location) => {
          const moved = ownLocation(location, '/a/b', PLACE);
          if (moved === null) return;
          const { origin, pathname } = new URL(moved, 'http://manager.example:8080');
          expect([origin, pathname.startsWith(`${PREFIX}/`)]).toEqual(['http://manager.example:8080', true]);
        },
      ),
    );
  });
});
