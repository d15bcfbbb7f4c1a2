import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('./slow-sync.c', import.meta.url));

/** The environment in which each sync takes `delay_ms` longer; null where there is no C compiler. */
export function slowSync(folder: string, delay_ms: number): NodeJS.ProcessEnv | null {
  const library = join(folder, 'slow-sync.so');
  const { status } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl']);
  return status === 0 ? { LD_PRELOAD: library, SLOW_SYNC_US: String(delay_ms * 1000) } : null;
}
