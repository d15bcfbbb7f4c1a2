import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A folder of the present test's own; it is removed with everything in it when the test has ended. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sandboxd-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
