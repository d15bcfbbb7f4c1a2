import { defineConfig } from 'vitest/config';

const FAULTS = 'test/faults/**/*.test.ts';

/** Real processes, files and disks: slow machines get time. */
const TIME = { testTimeout: 60_000, hookTimeout: 60_000 };

const config = defineConfig({
  test: {
    // No more workers than cores.
    maxWorkers: 2,
    projects: [
      { test: { name: 'tests', include: ['test/**/*.test.ts'], exclude: [FAULTS], ...TIME } },
      // Disks, networks and clocks are broken under a whole machine: what it disturbed is run again, and is told.
      { test: { name: 'faults', include: [FAULTS], retry: 2, ...TIME } },
    ],
  },
});

// biome-ignore lint/style/noDefaultExport: the test runner asks for it.
export default config;
