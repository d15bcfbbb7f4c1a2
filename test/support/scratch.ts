import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runSync } from './run-sync.ts';

/** A folder of the present test's own; it is removed with everything in it when the test has ended. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sandboxd-test-'));
  onTestFinished(() => {
    for (const path of mountsBelow(folder)) runSync('umount', '--lazy', path);
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // An ordinary user's directories that their owner may not enter.
      runSync('chmod', '-R', 'u+rwx', folder);
      rmSync(folder, { recursive: true, force: true });
    }
  });
  return folder;
}

/** What a test that failed has left mounted. */
function mountsBelow(folder: string): string[] {
  const paths = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  return paths.filter((path) => path.startsWith(`${folder}/`));
}
