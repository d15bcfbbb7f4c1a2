import { defineConfig } from 'vitest/config';

const FAULTS = 'test/faults/**/*.test.ts';

const COMMON = {
  // Real processes, files and disks: slow machines get time.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // Node strips types with WebAssembly that threads share, and V8 crashes now and then when it collects that code.
  execArgv: ['--no-wasm-code-gc'],
};

const config = defineConfig({
  test: {
    // No more workers than cores.
    maxWorkers: 2,
    projects: [
      { test: { name: 'tests', include: ['test/**/*.test.ts'], exclude: [FAULTS], ...COMMON } },
      // Disks, networks and clocks are broken under a whole machine: what it disturbed is run again, and is told.
      { test: { name: 'faults', include: [FAULTS], retry: 2, ...COMMON } },
    ],
  },
});

// biome-ignore lint/style/noDefaultExport: the test runner asks for it.
export default config;
