import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/** The administrator's programs too, and messages in English. */
const ENVIRONMENT = { PATH: '/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' };

/** Runs a system program to its end. Null if it succeeded, otherwise the first line that it reported. */
export async function runTool(program: string, ...args: string[]): Promise<string | null> {
  const child = spawn(program, args, { env: ENVIRONMENT, stdio: ['ignore', 'ignore', 'pipe'] });
  // Of a million files that cannot be removed only the first is reported.
  const said = text(child.stderr.take(10));
  try {
    const [code, signal] = await once(child, 'exit');
    if (code === 0) return null;
    return (await said).split('\n')[0] || `${program} exited with ${code ?? signal}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return `${program} is not installed`;
    throw error;
  }
}
