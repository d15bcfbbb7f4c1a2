import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SANDBOXD } from '../support/sandboxd-program.ts';
import { scratchFolder } from '../support/scratch.ts';

const DIST = dirname(SANDBOXD);

describe('what a built program loads', () => {
  it('is part of Node, of the build, or a package with native code', () => {
    // pg takes its native part where there is one.
    const known = [
      ...builtinModules,
      'pg-native',
      'better-sqlite3',
      'koffi',
      '@lydell/node-pty/requireBinary.js',
    ];
    const loaded = readdirSync(DIST)
      .filter((name) => name.endsWith('.cjs') && !name.startsWith('sandbox-manager'))
      .flatMap((name) => {
        const lines = readFileSync(join(DIST, name), 'utf8').split('\n');
        return lines.filter((line) => !/^\s*(\*|\/\/)|code:/.test(line));
      })
      .flatMap((line) => [...line.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, id = '']) => id));
    const outside = loaded.filter((id) => !/^(node:|\.\/)/.test(id) && !known.includes(id));
    expect(outside.filter((id) => !/^ajv/.test(id))).toEqual([]);
  });

  it('is of Node no more than the daemon has used when it refuses to start', () => {
    const preloaded = join(scratchFolder(), 'loaded.cjs');
    writeFileSync(preloaded, 'process.on("exit", () => console.log(process.moduleLoadList.join()));');
    const { stdout } = spawnSync(process.execPath, [
      ...['--disable-sigusr1', '--require', preloaded, SANDBOXD],
      ...['--state-dir', '/proc/none', '--port', '0'],
    ]);
    const loaded = String(stdout)
      .split(',')
      .map((name) => name.replace('NativeModule ', ''));
    expect(loaded).toContain('http');
    const slow = ['assert', 'child_process', 'crypto', 'dgram', 'dns', 'worker_threads', 'zlib'];
    expect(loaded.filter((name) => slow.includes(name))).toEqual([]);
  });
});

describe('what runs in every sandbox', () => {
  it('is kept by the engine in one byte a character', () => {
    const parts = readdirSync(DIST).filter((name) =>
      /^(sandboxd|sandboxctl|app|watch-thread)\b.*\.cjs$/.test(name),
    );
    expect(parts.length).toBeGreaterThan(5);
    const wide = parts.filter((name) => /[^\p{ASCII}]/u.test(readFileSync(join(DIST, name), 'utf8')));
    expect(wide).toEqual([]);
  });
});
