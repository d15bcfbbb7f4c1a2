import { lstatSync, statSync } from 'node:fs';
import { expect, it } from 'vitest';
import { kernelParts } from '../../../src/runtime/walls/kernel-parts.ts';

it('the kernel parts are everything writable or secret below /proc that is no process', () => {
  const parts = kernelParts();
  const paths = parts.map(({ path }) => path);
  expect(new Set(paths).size).toBe(paths.length);
  for (const { path, is_directory } of parts) {
    expect(path).toMatch(/^\/proc\/[^/\d][^/]*$/);
    expect(lstatSync(path).isSymbolicLink()).toBe(false);
    expect(statSync(path).isDirectory()).toBe(is_directory);
  }
  expect(parts).toContainEqual({ path: '/proc/sys', is_directory: true, is_hidden: false });
  expect(parts).toContainEqual({ path: '/proc/keys', is_directory: false, is_hidden: true });
  for (const path of ['/proc/self', '/proc/mounts', '/proc/version', '/proc/uptime']) {
    expect(paths).not.toContain(path);
  }
});
