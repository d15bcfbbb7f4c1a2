import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { readKernelSetting } from '../../base/linux/procfs.ts';
import { dumpsCore } from '../tree/signals.ts';

/**
 * Whether a process left a core dump. For a process that Node waits for, Node does not report the flag of the wait status,
 * so this checks where the kernel writes it: the file that core_pattern names, if it is newer than `since_ms` (wall clock). A helper program in
 * the pattern is assumed to have run. Patterns with parts that are unknown afterwards count as no dump.
 */
export async function hasDumpedCore(
  signal: string,
  pid: number,
  cwd: string,
  since_ms: number,
): Promise<boolean> {
  if (!dumpsCore(signal)) return false;
  const pattern = readKernelSetting('kernel/core_pattern');
  if (pattern.startsWith('|')) return true;
  if (pattern === '') return false;
  const name = pattern.replaceAll(/%[pPiI]/g, String(pid)).replaceAll('%%', '%');
  const with_pid = name === pattern && readKernelSetting('kernel/core_uses_pid') !== '0';
  const file = resolve(cwd, with_pid ? `${name}.${pid}` : name);
  const entry = await stat(file).catch(() => null);
  return entry !== null && entry.mtimeMs >= since_ms - 1_000;
}
