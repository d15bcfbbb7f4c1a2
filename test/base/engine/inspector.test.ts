import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { SANDBOXD } from '../../support/sandboxd-program.ts';

const DIST = dirname(SANDBOXD);
const NODE_FOLDER = dirname(process.execPath);
const SIGUSR1_BIT = 1n << 9n;

/** Resolves once the process handles SIGUSR1 in some way: before, it would simply die of it. */
async function takesSignals(pid: number): Promise<boolean> {
  for (;;) {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'latin1');
      const sets = [...status.matchAll(/^Sig(?:Blk|Cgt):\s*([0-9a-f]+)$/gm)];
      // The shell that becomes Node blocks signals for moments, too.
      const is_node = basename(readlinkSync(`/proc/${pid}/exe`)) === 'node';
      if (is_node && sets.some(([, set]) => (BigInt(`0x${set}`) & SIGUSR1_BIT) !== 0n)) return true;
    } catch {
      return false;
    }
    await new Promise(setImmediate);
  }
}

describe('SIGUSR1 at any moment of the start', () => {
  it.each([
    ['sandboxd', ['sandboxd.cjs']],
    ['sandbox-manager', ['sandbox-manager.cjs']],
    ['sandboxctl', ['sandboxctl.cjs']],
  ])('opens no inspector in %s', async (_, [name = '']) => {
    const child = spawn(join(DIST, name), ['--version'], {
      env: { PATH: `${NODE_FOLDER}:/usr/bin:/bin` },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const said = text(child.stderr);
    const ended = once(child, 'exit');
    await takesSignals(child.pid as number);
    while (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGUSR1');
      await new Promise(setImmediate);
    }
    expect([await ended, await said]).toEqual([[0, null], '']);
  });
});
