import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');

/** Which folders of `src/` a folder may import, itself aside. */
const MAY_IMPORT: Record<string, string[]> = {
  contract: [],
  base: ['contract'],
  webhook: ['contract', 'base'],
  process: ['contract', 'base'],
  watch: ['contract', 'base'],
  quota: ['contract', 'base'],
  usage: ['contract', 'base'],
  outbox: ['contract', 'base', 'webhook'],
  runtime: ['contract', 'base', 'webhook', 'outbox'],
  manager: ['contract', 'base', 'webhook', 'quota', 'usage', 'outbox', 'runtime'],
  daemon: ['contract', 'base', 'webhook', 'process', 'watch', 'outbox'],
  ctl: ['contract', 'base', 'webhook'],
  image: ['contract', 'base'],
};

/** Where a library may be imported: one owner each. */
const OWNERS: Record<string, RegExp> = {
  execa: /^src\/process\//,
  '@lydell/node-pty': /^src\/process\//,
  chokidar: /^src\/watch\//,
  picomatch: /^src\/watch\//,
  undici: /^src\/webhook\/transport\.ts$/,
  'better-sqlite3': /^src\/(outbox\/|manager\/sqlite-file\.ts$)/,
  kysely: /^src\/manager\//,
  pg: /^src\/manager\/(database|postgres-[a-z]+)\.ts$/,
  ioredis: /^src\/quota\//,
  yaml: /^src\/manager\/config-file\.ts$/,
  'p-retry': /^src\/outbox\//,
  fastify: /^src\/(base|daemon|manager)\//,
  pino: /^src\/base\/log\.ts$/,
  uuid: /^src\/base\/ids\.ts$/,
  commander: /^bin\//,
  ws: /^src\/(daemon|ctl)\//,
};

interface Source {
  path: string;
  text: string;
  /** Paths from the root for own files, package names for others. */
  imports: string[];
}

function sources(folder: string): Source[] {
  return readdirSync(join(ROOT, folder)).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(join(ROOT, path)).isDirectory()) return sources(path);
    return path.endsWith('.ts') ? [source(path)] : [];
  });
}

function source(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const named = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] as string);
  const imports = named.map((name) =>
    name.startsWith('.') ? relative(ROOT, resolve(ROOT, dirname(path), name)) : name,
  );
  return { path, text, imports };
}

const files = [...sources('src'), ...sources('bin')];
const folderOf = (path: string) => path.split('/')[1] as string;

describe('the house', () => {
  it('lets a folder import only the folders below it', () => {
    const wrong = files.flatMap(({ path, imports }) =>
      imports
        .filter((each) => path.startsWith('src/') && each.startsWith('src/'))
        .filter((each) => folderOf(each) !== folderOf(path))
        .filter((each) => !MAY_IMPORT[folderOf(path)]?.includes(folderOf(each)))
        .map((each) => `${path} -> ${each}`),
    );
    expect(wrong).toEqual([]);
  });

  it('has no circle of imports', () => {
    const imports = new Map(files.map((file) => [file.path, file.imports]));
    const state = new Map<string, 'open' | 'done'>();
    const circles: string[] = [];
    const visit = (path: string, trail: string[]) => {
      if (state.get(path) === 'open') circles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '));
      if (state.has(path)) return;
      state.set(path, 'open');
      for (const each of imports.get(path) ?? []) if (imports.has(each)) visit(each, [...trail, path]);
      state.set(path, 'done');
    };
    for (const { path } of files) visit(path, []);
    expect(circles).toEqual([]);
  });

  it('gives every library one owner', () => {
    const wrong = files.flatMap(({ path, imports }) =>
      imports.filter((name) => OWNERS[name] && !OWNERS[name].test(path)).map((name) => `${path} -> ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  it('takes time only from the clock', () => {
    const wrong = files.filter(
      ({ path, text }) =>
        path.startsWith('src/') &&
        path !== 'src/base/clock.ts' &&
        /(?<![.\w])(Date\.now\(|new Date\(\)|setTimeout\(|setInterval\()/.test(text),
    );
    // The log has its own stamps; a command's pause keeps its program running.
    expect(wrong.map(({ path }) => path).sort()).toEqual(['src/base/log.ts', 'src/ctl/pause.ts']);
  });

  it('keeps SQL in the stores', () => {
    const wrong = files.filter(
      ({ path, text }) =>
        /\b(INSERT INTO|DELETE FROM|UPDATE \w+ SET)\b/.test(text) && !/^src\/outbox\//.test(path),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  it("keeps the manager's queries in its stores and migrations", () => {
    const wrong = files.filter(
      ({ path, text }) =>
        /\b(selectFrom|insertInto|updateTable|deleteFrom)\(|\bsql(<[^>]*>)?`/.test(text) &&
        !/^src\/manager\/([a-z-]+-store|usage-positions|migrations)\.ts$/.test(path),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});
