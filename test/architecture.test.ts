import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');

/** What the rooms of the manager stand on. */
const FOUNDATION = ['contract', 'base', 'webhook', 'outbox', 'outbox/sqlite'];
const MANAGER = ['config', 'database', 'sandboxes', 'outbox', 'quotas', 'usage', 'events'].map(
  (room) => `manager/${room}`,
);

/** Where to ask whether a folder still tells one story, and a file is still one thing. */
const FILES_IN_A_FOLDER_MAX = 30;
const LINES_IN_A_FILE_MAX = 400;

/** Files that are longer all the same, with the reason. */
const LONG_FILES: Record<string, string> = {
  'src/contract/routes/daemon.ts': 'a row a route, and nothing else',
};

/** Which rooms of `src/` a room may import, itself and the stages inside it aside. The longest name counts. */
const MAY_IMPORT: Record<string, string[]> = {
  contract: [],
  base: ['contract'],
  webhook: ['contract', 'base'],
  process: ['contract', 'base'],
  watch: ['contract', 'base'],
  files: ['contract', 'base'],
  network: ['contract', 'base'],
  outbox: ['contract', 'base', 'webhook'],
  'outbox/sqlite': ['contract', 'base', 'webhook', 'outbox'],
  runtime: ['contract', 'base', 'webhook', 'network', 'outbox', 'outbox/sqlite'],
  daemon: ['contract', 'base', 'webhook', 'process', 'watch', 'files', 'outbox', 'outbox/sqlite'],
  ctl: ['contract', 'base', 'webhook', 'files', 'client'],
  // Others' programs and browsers run it: nothing of Node is in it. The command line and the console are built on it.
  client: ['contract'],
  receiver: ['contract'],
  // It runs in browsers, and has all else from the programs' APIs, which it calls as others' programs do.
  console: ['contract', 'client'],
  'manager/config': ['contract', 'base', 'webhook'],
  'manager/database': ['contract', 'base'],
  'manager/sandboxes': [...FOUNDATION, 'runtime', 'manager/config', 'manager/database'],
  'manager/outbox': [...FOUNDATION, 'runtime', 'manager/database', 'manager/sandboxes'],
  'manager/quotas': [
    ...FOUNDATION,
    'network',
    'runtime',
    'manager/config',
    'manager/database',
    'manager/sandboxes',
  ],
  'manager/usage': [...FOUNDATION, 'runtime', 'manager/database', 'manager/sandboxes'],
  'manager/transfer': [
    ...FOUNDATION,
    'network',
    'runtime',
    'manager/database',
    'manager/sandboxes',
    'manager/quotas',
    'manager/usage',
  ],
  'manager/events': [...FOUNDATION, 'runtime', 'manager/database', 'manager/sandboxes'],
  'manager/ownership': ['contract', 'base', 'runtime', 'manager/database'],
  'manager/prune': ['contract', 'base', 'manager/database', 'manager/ownership'],
  'manager/orphans': [...FOUNDATION, 'runtime', ...MANAGER, 'manager/ownership'],
  'manager/api': [...FOUNDATION, 'runtime', ...MANAGER, 'manager/transfer'],
  manager: [
    ...FOUNDATION,
    'runtime',
    ...MANAGER,
    'manager/ownership',
    'manager/prune',
    'manager/orphans',
    'manager/transfer',
    'manager/api',
  ],
};

/** The core of the manager: claims, transitions, deletion, outbox, quotas, usage, tokens, feed. `--runtime none` runs with it alone. */
const CORE = /^src\/manager\/(sandboxes|outbox|quotas|usage|events|database)\//;

/** The lines of the core may grow only for a reason, which the commit says that raises this. */
const CORE_LINES_MAX = 10_770;

/** Ports that wings implement for the core, which imports nothing else of these rooms, and of ports only types. */
const PORTS = new Set([
  'src/runtime/runtime.ts',
  'src/runtime/networks/sandbox-networks.ts',
  'src/network/authority.ts',
  'src/network/directions.ts',
]);

/** Each wing with the only files that import it, and its one entry, which is loaded on use. */
const WINGS = [
  { wing: 'src/console/', entry: null, importers: [] as string[] },
  {
    wing: 'src/runtime/kubernetes/',
    entry: 'src/runtime/kubernetes/kubernetes-runtime.ts',
    importers: ['src/runtime/choose.ts'],
  },
];

/** Doors: wings that answer others in the manager's place, with no rights but those of their callers. */
const DOORS = /^src\/(console|e2b)\//;

/** The one port by which a door calls the manager, of which it imports only types. */
const DOOR_PORT = 'src/manager/api/call.ts';

/** Rooms that a manager without sandboxes of its own never loads. */
const NOT_AT_START = /^src\/(console|network|runtime\/(kubernetes|local|walls|disk|limits|seccomp))\//;

/** Modules that load typebox wherever they are loaded: nouns and routes of the contract, and what checks by them. */
const LOADS_TYPEBOX = /^src\/(contract\/(routes\/)?|base\/schema\.ts$)/;

/** Others with a schema of their own, of what is in no document. */
const OWN_SCHEMAS = [
  'src/daemon/api/attach-frame.ts',
  'src/daemon/api/context-routes.ts',
  'src/manager/config/templates.ts',
];

/** What runs without typebox until somebody asks for a route: it costs memory and time in every sandbox and command. */
const STARTS_WITHOUT_TYPEBOX = [
  'bin/sandboxd.ts',
  'bin/sandboxd-options.ts',
  'bin/sandboxctl.ts',
  'bin/sandbox-manager.ts',
  'src/outbox/sqlite/writer-thread.ts',
  'src/outbox/sqlite/undelivered/hand-over-reader.ts',
  'src/watch/thread/watch-thread.ts',
  'src/files/thread/file-thread.ts',
  'src/network/meter/meter-thread.ts',
  'src/client/client.ts',
  'src/console/main.tsx',
];

/** What the tests share. Their programs are started by execa, too, but where one says why not. */
const TEST_HELPERS = ['test/support', 'test/faults/support', 'test/bench/support'];
const WITHOUT_EXECA = [
  'test/bench/support/bare-spawn.ts', // Node's own start of a program is what it measures
];

/** Where a library may be imported: one owner each. */
const OWNERS: Record<string, RegExp> = {
  '@lydell/node-pty': /^src\/process\//,
  chokidar: /^src\/watch\//,
  picomatch: /^src\/watch\//,
  undici: /^src\/webhook\/(exchange|transport)\.ts$/,
  'better-sqlite3': /^src\/(outbox\/sqlite\/|manager\/database\/|base\/file-lock\.ts$)/,
  kysely: /^src\/manager\//,
  pg: /^src\/manager\/(database|ownership)\//,
  ioredis: /^src\/manager\/quotas\//,
  yaml: /^src\/(manager\/config|ctl\/settings|runtime\/kubernetes\/api)\/config-file\.ts$/,
  'p-retry': /^src\/(base\/own-waits|daemon\/core|manager\/database-wait|outbox\/(attempts|endpoint))\.ts$/,
  koffi: /^src\/base\/linux\/libc\.ts$/,
  execa: /^src\/base\/start-program\.ts$/,
  'p-limit': /^src\/(webhook\/resolver|manager\/sandboxes\/limiter)\.ts$/,
  'eventsource-parser': /^src\/contract\/server-sent-events\.ts$/,
  preact: /^src\/console\//,
  'preact/hooks': /^src\/console\//,
  uplot: /^src\/console\/parts\//,
  '@xterm/xterm': /^src\/console\/terminal\/screen\.ts$/,
  '@xterm/addon-fit': /^src\/console\/terminal\/screen\.ts$/,
  '@xterm/addon-web-links': /^src\/console\/terminal\/screen\.ts$/,
  'string-width': /^src\/ctl\/terminal\//,
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
  /** Those of them that are loaded with the file: neither types alone, nor loaded on use. */
  loaded: string[];
}

function sources(folder: string): Source[] {
  return readdirSync(join(ROOT, folder)).flatMap((name) => {
    const path = join(folder, name);
    if (statSync(join(ROOT, path)).isDirectory()) return sources(path);
    return /\.tsx?$/.test(path) ? [source(path)] : [];
  });
}

function source(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8');
  const named = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((match) => match[1] as string);
  const resolved = (name: string) =>
    name.startsWith('.') ? relative(ROOT, resolve(ROOT, dirname(path), name)) : name;
  const loaded = [...text.matchAll(/^(?:import|export) (?!type\b)(?:[^;'=()]*from )?'([^']+)';$/gm)];
  return {
    path,
    text,
    imports: named.map(resolved),
    loaded: loaded.map((match) => resolved(match[1] as string)),
  };
}

const files = [...sources('src'), ...sources('bin')];

/** The file with all that is loaded with it, each with who has it loaded. */
function loadedWith(path: string): Map<string, string | null> {
  const of = new Map(files.map((file) => [file.path, file.loaded]));
  const reached = new Map<string, string | null>();
  const visit = (each: string, by: string | null) => {
    if (reached.has(each) || !of.has(each)) return;
    reached.set(each, by);
    for (const next of of.get(each) ?? []) visit(next, each);
  };
  visit(path, null);
  return reached;
}

const loadsTypebox = ({ loaded }: Source) => loaded.some((name) => /^typebox(\/|$)/.test(name));

/** The room that a file of `src/` is in: the longest name in the table that its folder begins with. */
function roomOf(path: string): string {
  const folder = dirname(path).replace(/^src\/?/, '');
  const rooms = Object.keys(MAY_IMPORT).filter((room) => `${folder}/`.startsWith(`${room}/`));
  return rooms.sort((a, b) => b.length - a.length)[0] ?? `no room: ${folder}`;
}

describe('the house', () => {
  it('lets a room import only the rooms below it', () => {
    const wrong = files.flatMap(({ path, imports }) =>
      imports
        .filter((each) => path.startsWith('src/') && each.startsWith('src/'))
        .filter((each) => roomOf(each) !== roomOf(path))
        .filter((each) => !MAY_IMPORT[roomOf(path)]?.includes(roomOf(each)))
        .map((each) => `${path} -> ${each}`),
    );
    expect(wrong).toEqual([]);
  });

  it('has at most 30 files in a folder', () => {
    const folders = Map.groupBy(files, ({ path }) => dirname(path));
    const full = [...folders].filter(([, { length }]) => length > FILES_IN_A_FOLDER_MAX);
    expect(full.map(([folder, { length }]) => `${folder}: ${length}`)).toEqual([]);
  });

  it('has at most 400 lines in a file, or a reason', () => {
    const long = files.filter(({ text }) => text.trimEnd().split('\n').length > LINES_IN_A_FILE_MAX);
    expect(long.map(({ path }) => path).sort()).toEqual(Object.keys(LONG_FILES).sort());
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

  it("keeps the manager's core free of wings: it knows their ports, and of these only types", () => {
    const core = files.filter(({ path }) => CORE.test(path));
    expect(core.length).toBeGreaterThan(50);
    const wrong = core.flatMap(({ path, imports, loaded }) => [
      ...imports
        .filter((each) => /^src\/(runtime|network|console|e2b|egress)\//.test(each) && !PORTS.has(each))
        .map((each) => `${path} -> ${each}`),
      ...loaded.filter((each) => PORTS.has(each)).map((each) => `${path} loads ${each}`),
    ]);
    expect(wrong).toEqual([]);
  });

  it("keeps the manager's core small", () => {
    const core = files.filter(({ path }) => CORE.test(path));
    const lines = core.reduce((sum, { text }) => sum + text.trimEnd().split('\n').length, 0);
    console.log(`the manager's core: ${core.length} files, ${lines} lines`);
    expect(lines).toBeLessThanOrEqual(CORE_LINES_MAX);
  });

  it.each(WINGS)(
    'enters the wing $wing by one file, which is loaded on use',
    ({ wing, entry, importers }) => {
      const outside = files.filter(({ path }) => !path.startsWith(wing) && !path.startsWith('bin/'));
      const found = outside.flatMap(({ path, imports, loaded }) =>
        imports
          .filter((each) => each.startsWith(wing))
          .map((each) => ({ path, each, is_loaded: loaded.includes(each) })),
      );
      expect(found).toEqual(importers.map((path) => ({ path, each: entry, is_loaded: false })));
    },
  );

  it('lets a door see the contract and its one port alone', () => {
    const doors = files.filter(({ path }) => DOORS.test(path));
    expect(doors.length).toBeGreaterThan(0);
    expect(files.map(({ path }) => path)).toContain(DOOR_PORT);
    const wrong = doors.flatMap(({ path, imports, loaded }) => [
      ...imports
        // What runs in browsers calls the manager by the client.
        .filter((each) => /^(src|bin)\//.test(each) && !/^src\/(contract|client)\//.test(each))
        .filter((each) => !DOORS.test(each) && each !== DOOR_PORT)
        .map((each) => `${path} -> ${each}`),
      ...loaded.filter((each) => each === DOOR_PORT).map((each) => `${path} loads ${each}`),
    ]);
    expect(wrong).toEqual([]);
  });

  it('starts a manager without sandboxes of its own without any wing', () => {
    const reached = [...loadedWith('src/manager/run.ts').keys()];
    expect(reached).toContain('src/manager/sandboxes/claims.ts');
    expect(reached.filter((path) => NOT_AT_START.test(path))).toEqual([]);
  });

  it('loads typebox with the contract and its checks alone', () => {
    const loading = files.filter(loadsTypebox).map(({ path }) => path);
    expect(loading.filter((path) => !LOADS_TYPEBOX.test(path)).sort()).toEqual(OWN_SCHEMAS);
    const on_use = files.filter(({ imports }) => imports.includes('typebox/compile'));
    expect(on_use.map(({ path }) => path)).toEqual(['src/ctl/api/sound-rows.ts']);
  });

  it.each(STARTS_WITHOUT_TYPEBOX)('starts %s without typebox', (path) => {
    const reached = loadedWith(path);
    expect(reached.has(path)).toBe(true);
    const loading = files.filter((file) => reached.has(file.path) && loadsTypebox(file));
    expect(loading.map((file) => `${reached.get(file.path)} loads ${file.path}`)).toEqual([]);
  });

  it('exports a name for one thing alone, where neither others nor browsers have names of their own', () => {
    const exported = files
      .filter(({ path }) => !/^src\/(client|receiver|console)\//.test(path))
      .flatMap(({ path, text }) =>
        [
          ...text.matchAll(
            /^export (?:async )?(?:abstract )?(?:function\*?|class|const|let|interface|type) (\w+)/gm,
          ),
        ].map(([, name]) => ({ name, path })),
      );
    const twice = [...Map.groupBy(exported, ({ name }) => name)]
      .map(([name, places]) => [name, ...new Set(places.map(({ path }) => path))])
      .filter(({ length }) => length > 2);
    expect(twice).toEqual([]);
  });

  it('gives every library one owner', () => {
    const wrong = files.flatMap(({ path, imports }) =>
      imports.filter((name) => OWNERS[name] && !OWNERS[name].test(path)).map((name) => `${path} -> ${name}`),
    );
    expect(wrong).toEqual([]);
  });

  it("starts processes by execa, but the daemon's own helpers", () => {
    const wrong = files.filter(({ loaded }) => loaded.includes('node:child_process'));
    expect(wrong.map(({ path }) => path)).toEqual(['src/base/linux/helper-process.ts']);
    expect(files.filter(({ loaded }) => loaded.includes('execa'))).toEqual([]);
    const helpers = TEST_HELPERS.flatMap(sources);
    expect(helpers.length).toBeGreaterThan(100);
    const own = helpers.filter(({ loaded }) => loaded.includes('node:child_process'));
    expect(own.map(({ path }) => path)).toEqual(WITHOUT_EXECA);
  });

  it("keeps V8's flags in one folder", () => {
    const printed = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    const flags = new Set([...printed.matchAll(/^ +--(?:no-)?([\w-]+)/gm)].map(([, name]) => name as string));
    expect(flags).toContain('wasm-tier-up');
    // Options of the programs, and of `umount`, with the same names.
    for (const name of ['help', 'lazy']) flags.delete(name);
    const wrong = files
      .filter(({ path }) => !path.startsWith('src/base/engine/'))
      .flatMap(({ path, text }) => {
        const named = [...text.matchAll(/(?<!\w)--(?:no-)?([a-z][\w-]*)/g)];
        const used = named
          .filter(([, name = '']) => flags.has(name.replaceAll('_', '-')))
          .map(([flag]) => flag);
        const loaded = /['"`](?:node:)?v8['"`]/.test(text) ? ['node:v8'] : [];
        return [...used, ...loaded].map((each) => `${path}: ${each}`);
      });
    expect(wrong).toEqual([]);
  });

  it('takes time only from the clock', () => {
    const wrong = files.filter(
      ({ path, text }) =>
        path.startsWith('src/') &&
        path !== 'src/base/clock.ts' &&
        path !== 'src/console/base/clock.ts' &&
        /(?<![.\w])(Date\.now\(|new Date\(\)|setTimeout\(|setInterval\()/.test(text),
    );
    // A command's pause keeps its program running; what others import runs without Node's clock.
    expect(wrong.map(({ path }) => path).sort()).toEqual([
      'src/client/pause.ts',
      'src/ctl/pause.ts',
      'src/receiver/verify.ts',
    ]);
  });

  it("lets the manager know no time but its database's", () => {
    const manager = files.filter(({ path }) => path.startsWith('src/manager/'));
    // They hand the machine's clock to the database's, or measure how long something takes with it.
    const machines = manager.filter(({ text }) => /\b(system|working)Clock\b/.test(text));
    expect(machines.map(({ path }) => path).sort()).toEqual([
      'src/manager/database/database.ts',
      'src/manager/database/sqlite-file.ts',
      'src/manager/orphans/orphans-command.ts',
      'src/manager/ownership/hold-database.ts',
      'src/manager/prune/prune-command.ts',
      'src/manager/quotas/redis-authority.ts',
      'src/manager/run.ts',
      'src/manager/token-command.ts',
    ]);
    // Whoever reads a wall clock takes the database's by its type, into which no other clock fits.
    const readers = manager.filter(({ text }) => /\bwallMs\b/.test(text));
    const wrong = readers.filter(({ text }) => /\bClock\b[^;]*from '[./]*base\/clock.ts'/.test(text));
    expect(readers.length).toBeGreaterThan(10);
    expect(wrong.map(({ path }) => path)).toEqual(['src/manager/database/database-clock-store.ts']);
    expect(readers.filter((reader) => machines.includes(reader))).toEqual([]);
  });

  it('keeps SQL in the stores', () => {
    const wrong = files.filter(
      ({ path, text }) =>
        /\b(INSERT INTO|DELETE FROM|UPDATE \w+ SET)\b/.test(text) && !/^src\/outbox\/sqlite\//.test(path),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  it("keeps the manager's queries in its stores and migrations", () => {
    const wrong = files.filter(
      ({ path, text }) =>
        /\b(selectFrom|insertInto|updateTable|deleteFrom)\(|\bsql(<[^>]*>)?`/.test(text) &&
        !/^src\/manager\/(?:[a-z]+\/)+([a-z-]+-store|migrations\/[a-z-]+)\.ts$/.test(path),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });
});
