import type { Readable } from 'node:stream';
import { loadStartProgram, type ProgramFile, type StartedProgram } from '../start-program.ts';
import { LAUNCHER, type LauncherStarter, type StartedLauncher } from './launcher.ts';

/**
 * The launcher by execa, for installations whose addon koffi cannot be loaded. Each start copies the daemon's page tables.
 * Whether an ended process left a core dump is unknown, and one that a real-time signal ended has ended with code 0: Node
 * tells neither.
 */
export async function openPortableLauncher(): Promise<LauncherStarter> {
  const startProgram = await loadStartProgram();
  const start = (args: readonly string[], env: Readonly<Record<string, string>>, stdio: ProgramFile[]) =>
    startProgram([LAUNCHER, ...args], { argv0: 'launcher', env, stdio, is_detached: stdio.length > 3 });
  return {
    program: (args, env, [stdin, stdout, stderr]) =>
      started(start(args, env, [stdin ?? 'ignore', stdout ?? 'ignore', stderr ?? 'ignore', 'pipe']), 3),
    helper: (args) => started(start(args, {}, ['ignore', 'pipe', 'ignore']), 1),
  };
}

function started({ child, ended }: StartedProgram, pipe: 1 | 3): StartedLauncher | Promise<string> {
  const { pid } = child;
  if (pid === undefined) return ended.then(({ refusal }) => refusal ?? 'UNKNOWN');
  const output = child.stdio[pipe] as Readable;
  output.on('error', () => {}); // its end follows
  child.unref();
  return {
    pid,
    readSoon: () => null,
    rest: () => output,
    close: () => output.destroy(),
    onceEnded: (onEnded) => {
      child.once('exit', (code, signal) =>
        onEnded(signal === null ? { code: code ?? 0, signal } : { code: null, signal, core_dumped: false }),
      );
    },
  };
}
