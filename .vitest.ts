import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Servers, killed processes, network namespaces, or much patience. */
const SLOW = [
  'test/outbox/sqlite/{salvage,undelivered}/**',
  'test/outbox/sqlite/client.test.ts',
  'test/outbox/kept-records.test.ts',
  'test/manager/{backup,database-wait,exposure,fuzz-pass-through,killed,odd-text,replicas,request-smuggling,run}.test.ts',
  'test/manager/api/{pass-through,sandbox-calls}.test.ts',
  'test/manager/api/ports/hostile-port.test.ts',
  'test/manager/database/{database-driver,database-errors,postgres-*}.test.ts',
  'test/manager/events/feed-race.test.ts',
  'test/manager/quotas/redis-*.test.ts',
  'test/manager/sandboxes/housekeeping.test.ts',
  'test/manager/usage/usage-store.test.ts',
  // Switches V8, which no other test should notice.
  'test/base/engine/{heap,response-parser}.test.ts',
];

/** Needs neither root nor a built program. `npm run test:quick` runs this alone, without PostgreSQL and Redis, in at most a minute. */
const QUICK = globSync(
  [
    'test/*.test.ts',
    'test/{contract,base,webhook,outbox,files,manager}/**/*.test.ts',
    'test/watch/{classify,index}/**/*.test.ts',
  ],
  { cwd: import.meta.dirname, exclude: SLOW },
);

/** What breaks disks, networks and clocks, and what brings up browsers, clusters, booted systems and foreign file systems. */
const WHOLE_MACHINE = [
  'test/faults/**/*.test.ts',
  'test/console/**/*.test.ts',
  'test/client/browser.test.ts',
  'test/deploy/**/*.test.ts',
  'test/interop/**/*.test.ts',
  'test/runtime/kubernetes/**/*.test.ts',
  'test/watch/remote-mounts.test.ts',
];

/** What takes minutes has a configuration of its own, `.vitest-long.ts`. */
const LONG = 'test/long/**';

const COMMON = {
  // Real processes, files and disks: slow machines get time.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // Node strips types with WebAssembly that threads share, and V8 crashes now and then when it collects that code.
  execArgv: ['--no-wasm-code-gc'],
};

const config = defineConfig({
  test: {
    // Tests wait more than they compute: for timeouts, disks and other programs.
    maxWorkers: availableParallelism() + 1,
    projects: [
      // What the rest of the machine disturbed is run again, and is told.
      { test: { name: 'quick', include: QUICK, isolate: false, retry: 1, ...COMMON } },
      {
        test: {
          name: 'tests',
          include: ['test/**/*.test.ts'],
          exclude: [...QUICK, ...WHOLE_MACHINE, LONG],
          retry: 1,
          ...COMMON,
        },
      },
      { test: { name: 'machine', include: WHOLE_MACHINE, retry: 2, ...COMMON } },
    ],
  },
});

// biome-ignore lint/style/noDefaultExport: the test runner asks for it.
export default config;
