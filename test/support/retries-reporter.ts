import type { Reporter, TestCase } from 'vitest/node';

/** Names every test that passed only when it was run again, and counts them, at the end of the run. */
class RetriesReporter implements Reporter {
  readonly #retried: string[] = [];

  onTestCaseResult(test: TestCase): void {
    const retries = test.diagnostic()?.retryCount ?? 0;
    if (retries > 0) this.#retried.push(`${test.module.moduleId}: ${test.fullName} (${retries})`);
  }

  onTestRunEnd(): void {
    for (const line of this.#retried) console.log(`retried: ${line}`);
    console.log(`${this.#retried.length} retried`);
  }
}

// biome-ignore lint/style/noDefaultExport: the test runner asks for it.
export default RetriesReporter;
