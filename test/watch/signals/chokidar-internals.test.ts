import { createRequire } from 'node:module';
import { FSWatcher } from 'chokidar';
import { describe, expect, it, onTestFinished } from 'vitest';

const { devDependencies } = createRequire(import.meta.url)('../../../package.json');

const gone = (member: string) =>
  `chokidar ${devDependencies.chokidar} no longer has ${member}: see src/watch/signals/chokidar-internals.ts`;

describe('chokidar', () => {
  it('is of one exact version, because it is used through members that are not public', () => {
    expect(devDependencies.chokidar).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('has FSWatcher.handler.subscribePath, which sets a single watch', () => {
    const watcher = new FSWatcher();
    onTestFinished(() => watcher.close());
    expect(typeof watcher.handler?.subscribePath, gone('FSWatcher.handler.subscribePath')).toBe('function');
  });

  it('has FSWatcher.isUnwatched, by which it is kept from acting on signals', () => {
    expect(typeof FSWatcher.prototype.isUnwatched, gone('FSWatcher.isUnwatched')).toBe('function');
  });
});
