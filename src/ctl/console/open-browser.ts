import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

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
  const opener = spawn('xdg-open', [pathToFileURL(file).href], { stdio: 'ignore', detached: true, env });
  // The URL has been printed.
  opener.on('error', () => {});
  opener.unref();
  return () => rmSync(folder, { recursive: true, force: true });
}
