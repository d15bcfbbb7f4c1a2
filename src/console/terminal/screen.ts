import { FitAddon } from '@xterm/addon-fit';
import { WebLinksAddon } from '@xterm/addon-web-links';
import { type ITheme, Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import { withStyleSheets } from './style-sheets.ts';

/** A terminal on the page. This file and its libraries come with the first terminal. */
export interface Screen {
  /** Resolves once the bytes are drawn: who writes faster would have the terminal drop some. */
  write(bytes: Uint8Array): Promise<void>;
  /** A line of the page's own, apart from what the process writes. */
  note(text: string): void;
  /** Fits the terminal to its box; the size is told to `onResize`. */
  fit(): void;
  setDark(is_dark: boolean): void;
  focus(): void;
  end(): void;
}

/** What a screen tells. */
export interface ScreenEvents {
  onType(text: string): void;
  onResize(cols: number, rows: number): void;
  /** A link in the text was clicked with Ctrl; the text says where it leads. */
  onLink(url: string): void;
  /** The keyboard is to leave the terminal. */
  onLeave(): void;
}

const SCROLLBACK_LINES = 10_000;
const FONT = 'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

const DARK: ITheme = {
  background: '#0a0d11',
  foreground: '#e5e9f0',
  cursor: '#8fadff',
  cursorAccent: '#0a0d11',
  selectionBackground: '#2d4380',
};
const LIGHT: ITheme = {
  background: '#ffffff',
  foreground: '#171c26',
  cursor: '#2f55cf',
  cursorAccent: '#ffffff',
  selectionBackground: '#c9d6fb',
  black: '#171c26',
  red: '#b8252f',
  green: '#157347',
  yellow: '#8a5a00',
  blue: '#2f55cf',
  magenta: '#8b2fa8',
  cyan: '#0c6b7f',
  white: '#566070',
  brightBlack: '#566070',
  brightRed: '#b8252f',
  brightGreen: '#157347',
  brightYellow: '#8a5a00',
  brightBlue: '#2f55cf',
  brightMagenta: '#8b2fa8',
  brightCyan: '#0c6b7f',
  brightWhite: '#171c26',
};

/** Opens a terminal in a box. What the process writes can set no title, open no link, and reach no clipboard. */
export function openScreen(box: HTMLElement, is_dark: boolean, events: ScreenEvents): Screen {
  const terminal = new Terminal({
    theme: is_dark ? DARK : LIGHT,
    fontFamily: FONT,
    fontSize: 13,
    scrollback: SCROLLBACK_LINES,
    minimumContrastRatio: 4.5,
    screenReaderMode: true,
    // A sequence may give a text another target than it shows.
    linkHandler: { activate: () => {} },
  });
  const fitting = new FitAddon();
  terminal.loadAddon(fitting);
  terminal.loadAddon(
    new WebLinksAddon((event, url) => {
      if (event.ctrlKey || event.metaKey) events.onLink(url);
    }),
  );
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key !== 'Escape' || !event.ctrlKey || !event.shiftKey) return true;
    if (event.type === 'keydown') events.onLeave();
    return false;
  });
  terminal.onData((text) => events.onType(text));
  terminal.onResize(({ cols, rows }) => events.onResize(cols, rows));
  withStyleSheets(() => terminal.open(box));
  const encoder = new TextEncoder();
  return {
    write: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    note: (text) => terminal.write(encoder.encode(`\r\n\u001b[0;2m${text}\u001b[0m\r\n`)),
    fit: () => fitting.fit(),
    setDark: (value) => {
      terminal.options.theme = value ? DARK : LIGHT;
    },
    focus: () => terminal.focus(),
    end: () => terminal.dispose(),
  };
}
