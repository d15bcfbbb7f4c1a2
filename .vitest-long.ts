import { randomInt } from 'node:crypto';
import { defineConfig } from 'vitest/config';

const SEED = process.env.LONG_SEED ?? String(randomInt(2 ** 31));
// Other tools load this file as well.
if (process.env.VITEST) console.log(`LONG_SEED=${SEED} LONG_SIZE=${process.env.LONG_SIZE ?? 1}`);

const HOUR_MS = 3_600_000;

/** What takes minutes: `npm run test:long`. Neither `npm test` nor `.ci/run` runs it. */
const config = defineConfig({
  test: {
    include: ['test/long/**/*.test.ts'],
    env: { LONG_SEED: SEED },
    // Sums of memory and of load: one file at a time has the machine.
    fileParallelism: false,
    testTimeout: HOUR_MS,
    hookTimeout: HOUR_MS,
    reporters: ['verbose'],
    execArgv: ['--no-wasm-code-gc'],
  },
});

// biome-ignore lint/style/noDefaultExport: the test runner asks for it.
export default config;
