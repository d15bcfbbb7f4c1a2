import { once } from 'node:events';
import { execa } from 'execa';
import { onTestFinished } from 'vitest';

/**
 * Returns what sets how many files this process may have open. A shell does it, since this process may be unable to
 * start one by then. The limit is 1 024 again when the test has ended.
 */
export function fileLimit(): (limit: number) => Promise<void> {
  const script = `while read limit; do prlimit --pid ${process.pid} --nofile=$limit: && echo; done`;
  const setter = execa('sh', ['-c', script], { stderr: 'inherit', buffer: false, reject: false });
  const set = async (limit: number) => {
    setter.stdin.write(`${limit}\n`);
    await once(setter.stdout, 'data');
  };
  onTestFinished(async () => {
    await set(1_024);
    setter.kill();
  });
  return set;
}
