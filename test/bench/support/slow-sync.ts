import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { succeeds } from '../../support/run-sync.ts';

const SOURCE = fileURLToPath(new URL('./slow-sync.c', import.meta.url));

/** The environment in which each sync takes `delay_ms` longer; null where there is no C compiler. */
export function slowSync(folder: string, delay_ms: number): NodeJS.ProcessEnv | null {
  const library = join(folder, 'slow-sync.so');
  const is_made = succeeds('cc', '-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl');
  return is_made ? { LD_PRELOAD: library, SLOW_SYNC_US: String(delay_ms * 1000) } : null;
}
