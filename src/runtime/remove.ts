import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/**
 * Removes a directory with everything that a sandbox may have created in it: trees deeper than the longest path,
 * millions of files, directories without write permission. Links are not followed. Throws if something is left.
 */
export async function removeTree(directory: string): Promise<void> {
  if ((await run('rm', '-rf', '--', directory)) === null) return;
  // An owner without permissions in its own directory grants them to itself first.
  await run('chmod', '-R', 'u+rwX', '--', directory);
  const why = await run('rm', '-rf', '--', directory);
  if (why !== null) throw new Error(`${directory} cannot be removed: ${why}`);
}

/** Null if the program succeeded, otherwise the first line that it reported. */
async function run(program: string, ...args: string[]): Promise<string | null> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  // Of a million files that cannot be removed only the first is reported.
  const said = text(child.stderr.take(10));
  const [code] = await once(child, 'exit');
  if (code === 0) return null;
  return (await said).split('\n')[0] || `${program} exited with ${code}`;
}
