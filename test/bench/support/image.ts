import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const TREE = fileURLToPath(new URL('../../../dist/image/', import.meta.url));
export const NODE = join(TREE, 'usr/local/lib/sandboxd/node');
export const SANDBOXD = join(TREE, 'usr/local/bin/sandboxd');

let is_made = false;

/** Makes the tree that images hold, from the sources as they are. */
export function makeTree(): void {
  const maker = fileURLToPath(new URL('../../../.build/image/build.ts', import.meta.url));
  if (!is_made) execFileSync(process.execPath, [maker, TREE.replace(/\/$/, '')], { stdio: 'ignore' });
  is_made = true;
}

/** Resolves with the log's line of this message. */
export function logged(child: ChildProcess, msg: string): Promise<Record<string, string>> {
  return new Promise((resolve, reject) => {
    const lines: string[] = [];
    createInterface({ input: child.stderr as NodeJS.ReadableStream }).on('line', (line) => {
      lines.push(line);
      const told = line.startsWith('{') ? JSON.parse(line) : {};
      if (told.msg === msg) resolve(told);
    });
    child.once('exit', () => reject(new Error(['the daemon ended:', ...lines].join('\n'))));
  });
}

/** Ends it at once. */
export async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
