import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { leaveProgram, startProgram } from '../../base/start-program.ts';

/**
 * Opens a URL in the desktop's browser, where there is one. Process lists show what programs are started with, so that the
 * browser is given a file, which only its user can read, that leads there. Returns what removes the file.
 */
export function openBrowser(url: string, env: NodeJS.ProcessEnv): () => void {
  if (!env.DISPLAY && !env.WAYLAND_DISPLAY) return () => {};
  const folder = mkdtempSync(join(tmpdir(), 'sandboxctl-console-'));
  const file = join(folder, 'console.html');
  const page = `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${url}"><title>Console</title>`;
  writeFileSync(file, page, { mode: 0o600 });
  const stdio = ['ignore', 'ignore', 'ignore'] as const;
  // Without a browser nothing opens: the URL has been printed.
  void startProgram(['xdg-open', pathToFileURL(file).href], { env, stdio, is_detached: true }).then(
    leaveProgram,
  );
  return () => rmSync(folder, { recursive: true, force: true });
}
