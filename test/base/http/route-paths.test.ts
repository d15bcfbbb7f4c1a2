import { describe, expect, it } from 'vitest';
import { RoutePaths } from '../../../src/base/http/route-paths.ts';

const paths = new RoutePaths();
paths.add('/healthz', 'GET');
paths.add('/processes', ['GET', 'POST']);
paths.add('/processes/:id', 'GET');
paths.add('/processes/:id', 'DELETE');
paths.add('/files/*', 'GET');
paths.add('/files/list', 'POST');
paths.add('/a.b', 'GET');

describe('the methods of a path', () => {
  it.each<[string, string[]]>([
    ['/healthz', ['GET']],
    ['/healthz?x=1', ['GET']],
    ['/healthz#part', ['GET']],
    ['/healthz;x', ['GET']],
    ['http://localhost:1/healthz', ['GET']],
    ['HTTPS://Host/healthz?x', ['GET']],
    ['/processes', ['GET', 'POST']],
    ['/processes/p%201', ['GET', 'DELETE']],
    ['/processes/a/b', []],
    ['/processes/', []],
    ['/files/', ['GET']],
    ['/files/a/b/c', ['GET']],
    ['/files/list', ['GET', 'POST']],
    ['/a.b', ['GET']],
    ['/aXb', []],
    ['/Healthz', []],
    ['/%68ealthz', ['GET']],
    ['/%', []],
    ['/%c3', []],
    ['', []],
    ['*', []],
  ])('of %j', (target, methods) => {
    expect(paths.methodsOf(target)).toEqual(methods);
  });
});
