import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

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
      {
        test: { name: 'tests', include: ['test/**/*.test.ts'], exclude: WHOLE_MACHINE, retry: 1, ...COMMON },
      },
      { test: { name: 'machine', include: WHOLE_MACHINE, retry: 2, ...COMMON } },
    ],
  },
});

// biome-ignore lint/style/noDefaultExport: the test runner asks for it.
export default config;
