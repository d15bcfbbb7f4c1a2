import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'rolldown';
import { withoutOptionals } from '../../../.build/image/optionals.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Durations of the product, in ms, and what they are here: the order and the meaning of all of them stay. */
const HASTY: [file: string, constant: string, value: string][] = [
  ['manager/sandboxes/operations.ts', 'LEASE_MS', '1_000'],
  ['manager/sandboxes/operations.ts', 'ANSWER_MS', '200'],
  ['manager/sandboxes/housekeeping.ts', 'RENEW_MS', '250'],
  ['manager/sandboxes/housekeeping.ts', 'WATCH_MS', '500'],
  ['manager/sandboxes/housekeeping.ts', 'RECOVERY_MS', '200'],
  ['manager/outbox/endpoints.ts', 'POLL_MS', '250'],
  ['manager/outbox/replica-lease.ts', 'ATTEMPT_LEASE_MS', '600'],
  ['contract/defaults.ts', 'OUTBOX_LEASE_MS', '1_200'],
  ['contract/defaults.ts', 'PAUSE_FLUSH_MS', '200'],
  ['contract/defaults.ts', 'ATTEMPT_TIMEOUT_MS', '500'],
];

/**
 * The built manager with leases of a second instead of a quarter of a minute, and with a wall clock that can be set
 * (see `shifted-clock.ts`). `program` is run as the built one is; `remove` takes it away.
 */
export interface HastyManager {
  program: string;
  remove(): void;
}

/** Builds it beside a copy of the other programs. Throws where a duration is not found in its file. */
export async function buildHastyManager(): Promise<HastyManager> {
  const folder = mkdtempSync(join(tmpdir(), 'sandboxd-hasty-'));
  const dist = join(folder, 'dist');
  cpSync(join(ROOT, 'dist'), dist, { recursive: true, preserveTimestamps: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const found = new Set<string>();
  await build({
    input: { 'sandbox-manager-options': fileURLToPath(new URL('./manager-main.ts', import.meta.url)) },
    platform: 'node',
    external: ['better-sqlite3', 'koffi', '@lydell/node-pty', 'pg-native'],
    plugins: [withoutOptionals, hasty(found)],
    logLevel: 'warn',
    output: {
      dir: dist,
      format: 'cjs',
      entryFileNames: '[name].cjs',
      chunkFileNames: '[name]-[hash].cjs',
      cleanDir: false,
      dynamicImportInCjs: false,
    },
  });
  const lost = HASTY.filter(([file, constant]) => !found.has(`${file} ${constant}`));
  if (lost.length > 0) throw new Error(`no such duration: ${lost.map((row) => row.join(' ')).join(', ')}`);
  return {
    program: join(dist, 'sandbox-manager.cjs'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

function hasty(found: Set<string>): Plugin {
  return {
    name: 'hasty',
    transform(code, id) {
      let changed = code;
      for (const [file, constant, value] of HASTY) {
        if (!id.endsWith(`/src/${file}`)) continue;
        changed = changed.replace(new RegExp(`(const ${constant} = )[^;]+;`), (_, start: string) => {
          found.add(`${file} ${constant}`);
          return `${start}${value};`;
        });
      }
      return changed === code ? null : changed;
    },
  };
}
