import { expect, it } from 'vitest';
import { portIn, serverTarget } from '../../../../src/manager/api/ports/port-target.ts';

const PREFIX = '/api/v1/sandboxes/sbx_1/ports/8000';

it.each([
  [PREFIX, '/'],
  [`${PREFIX}/`, '/'],
  [`${PREFIX}?a=b`, '/?a=b'],
  [`${PREFIX}/a%2fb/../c;d=1//?x=%zz&y#z`, '/a%2fb/../c;d=1//?x=%zz&y'],
  [`http://manager.example:8080${PREFIX}/x?http://y/z`, '/x?http://y/z'],
  [`${PREFIX}//elsewhere.example/x`, '//elsewhere.example/x'],
])('the target of %s at the server is %s', (url, target) => {
  expect(serverTarget(url)).toBe(target);
});

it.each(['0', '65536', '080', '80a', '-1', '1e3', ' 80', '99999'])('%j is no port', (text) => {
  expect(() => portIn(text)).toThrow('port: must be a whole number from 1 to 65535');
});

it('ports are numbers from 1 to 65535', () => {
  expect(['1', '65535'].map(portIn)).toEqual([1, 65_535]);
});
