import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

/**
 * Removes a directory with everything in it, whatever a sandbox has made there: trees deeper than any path may be
 * long, as many files as there is room for, directories without the right to write. No link is followed. Throws where
 * something is left.
 */
export async function removeTree(directory: string): Promise<void> {
  if ((await run('rm', '-rf', '--', directory)) === null) return;
  // An owner without rights in his own directory gives himself those first.
  await run('chmod', '-R', 'u+rwX', '--', directory);
  const why = await run('rm', '-rf', '--', directory);
  if (why !== null) throw new Error(`${directory} cannot be removed: ${why}`);
}

/** Null where the program succeeded, otherwise its first word on why not. */
async function run(program: string, ...args: string[]): Promise<string | null> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  // Of a million files that cannot be removed the first is told.
  const said = text(child.stderr.take(10));
  const [code] = await once(child, 'exit');
  if (code === 0) return null;
  return (await said).split('\n')[0] || `${program} ended with ${code}`;
}
