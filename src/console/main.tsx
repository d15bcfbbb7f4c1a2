import { render } from 'preact';
import './design/tokens.css';
import './design/base.css';
import './design/shell.css';
import './design/controls.css';
import './design/panels.css';
import './design/table.css';
import './design/files.css';
import './design/terminal.css';
import './base/theme.ts';
import { App } from './app.tsx';
import { sleep } from './base/clock.ts';
import { type Program, program } from './base/session.ts';
import { listenForShortcuts } from './shell/shortcuts.ts';

const AGAIN_MS = 1_000;

/** Which program serves the page. Asked until it is told: the page may come from a browser's cache. */
async function servedBy(): Promise<Program> {
  for (;;) {
    try {
      const response = await fetch(new URL('program.json', document.baseURI), { cache: 'no-store' });
      const { program: name } = (await response.json()) as { program?: string };
      if (name === 'manager' || name === 'daemon') return name;
    } catch {
      // The server is away.
    }
    await sleep(AGAIN_MS);
  }
}

const root = document.getElementById('page');
if (root) render(<App />, root);
listenForShortcuts();
program.set(await servedBy());
