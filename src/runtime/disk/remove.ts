import { runTool } from './tool.ts';

/**
 * Removes a directory with everything that a sandbox may have created in it: trees deeper than the longest path,
 * millions of files, directories without write permission. Links are not followed. Throws if something is left.
 */
export async function removeTree(directory: string): Promise<void> {
  if ((await runTool('rm', '-rf', '--', directory)) === null) return;
  // An owner without permissions in its own directory grants them to itself first.
  await runTool('chmod', '-R', 'u+rwX', '--', directory);
  const why = await runTool('rm', '-rf', '--', directory);
  if (why !== null) throw new Error(`${directory} cannot be removed: ${why}`);
}
