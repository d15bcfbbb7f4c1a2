import { defineConfig } from 'vitest/config';

// Real processes, files and disks: slow machines get time, and no more workers than cores.
const config = defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    // Real disks, networks and process tables are shared with the machine: a disturbed test is run again.
    retry: 2,
  },
});

// biome-ignore lint/style/noDefaultExport: the test runner asks for it.
export default config;
