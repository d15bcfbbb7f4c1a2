import { describe, expect, it } from 'vitest';
import { compileIgnored, pathBelow } from '../../src/watch/ignore.ts';

describe('what is ignored', () => {
  it('is nothing by default', () => {
    expect(compileIgnored('/w', [], [])).toBeNull();
    expect(compileIgnored('/w', [], ['/elsewhere'])).toBeNull();
  });

  it.each([
    ['*.tmp', 'a/b/.x.tmp', true],
    ['*.tmp', 'a/b/x.tmp.keep', false],
    ['build/out', 'build/out', true],
    ['build/out', 'a/build/out', false],
    ['/top', 'a/top', false],
    ['./top/', 'top', true],
    ['/w/**/cache', 'a/b/cache', true],
    ['*', 'new\nline', true],
    ['!a', '!a', true],
  ])('by the glob %s: %j is %s', (glob, path, is_ignored) => {
    expect(compileIgnored('/w', [glob], [])?.(path)).toBe(is_ignored);
  });

  it.each(['/', './', '//', '/w/'])('is nothing by the glob %s, which names the directory itself', (glob) => {
    const ignored = compileIgnored('/w', [glob], []);
    expect([ignored?.(''), ignored?.('a'), ignored?.('a/b')]).toEqual([false, false, false]);
  });

  it("includes the daemon's own paths below the watched directory", () => {
    const isIgnored = compileIgnored('/w', [], ['/w/state', '/elsewhere']);
    expect([isIgnored?.('state'), isIgnored?.('a/state')]).toEqual([true, false]);
  });
});

describe('a path below another', () => {
  it.each([
    ['/a', '/a/b', 'b'],
    ['/a', '/a', ''],
    ['/a', '/ab', null],
    ['/a/b', '/a', null],
    ['/a', '/a/..b', '..b'],
  ])('below %s, %s is %j', (outer, inner, path) => {
    expect(pathBelow(outer, inner)).toBe(path);
  });
});
