import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { NODE_FLAGS } from '../../src/base/engine/flags.ts';

const EMULATOR = 'qemu-aarch64-static';
/** Where Debian's `libc6-arm64-cross` and `libstdc++6-arm64-cross` put arm64's libraries. */
const LIBRARIES = process.env.QEMU_LD_PREFIX ?? '/usr/aarch64-linux-gnu';

/** Why a program for arm64 cannot be run on this machine, or null where it can. */
export function missingEmulation(): string | null {
  if (spawnSync(EMULATOR, ['--version']).status !== 0)
    return `${EMULATOR} is not installed (qemu-user-static)`;
  if (existsSync(join(LIBRARIES, 'lib/ld-linux-aarch64.so.1'))) return null;
  return `${LIBRARIES} has no libraries of arm64 (libc6-arm64-cross, libstdc++6-arm64-cross), nor does QEMU_LD_PREFIX name some`;
}

/**
 * Unpacks an image for arm64 and starts its daemon under the emulator until it is ready, takes a publish, and ends by
 * SIGTERM with 0. Returns what it says of its version; throws with its log where any of this fails.
 */
export async function startEmulated(archive: string): Promise<string> {
  const scratch = mkdtempSync(join(tmpdir(), 'sandboxd-arm64-'));
  try {
    execFileSync('tar', ['-xzf', archive, '-C', scratch]);
    const library = join(scratch, 'usr/local/lib/sandboxd');
    const node = ['-L', LIBRARIES, join(library, 'node'), ...NODE_FLAGS, join(library, 'sandboxd.cjs')];
    const version = execFileSync(EMULATOR, [...node, '--version'], { encoding: 'utf8' }).trim();
    const state = join(scratch, 'state');
    mkdirSync(state, { mode: 0o700 });
    const webhook = ['--webhook-url', 'http://127.0.0.1:9/', '--shutdown-grace-ms', '0'];
    const child = spawn(EMULATOR, [...node, '--state-dir', state, '--port', '0', ...webhook], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env.PATH },
    });
    const ended = once(child, 'exit');
    const lines: string[] = [];
    let url = '';
    for await (const line of createInterface({ input: child.stderr })) {
      lines.push(line);
      const entry = line.startsWith('{') ? JSON.parse(line) : {};
      if (entry.msg === 'listening') url = entry.url;
      if (entry.msg !== 'ready') continue;
      const published = await publish(url).catch((error: Error) => error.message);
      if (published !== 202) lines.push(`publish: ${published}`);
      child.kill('SIGTERM');
    }
    const [code] = await ended;
    if (code !== 0 || lines.some((line) => line.startsWith('publish: '))) {
      throw new Error(`the daemon for arm64 ended with ${code}:\n${lines.join('\n')}`);
    }
    return version;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

async function publish(url: string): Promise<number> {
  const headers = { 'content-type': 'application/json' };
  const body = '{"payload":{"step":1}}';
  return (await fetch(`${url}/api/v1/webhook/publish`, { method: 'POST', headers, body })).status;
}
