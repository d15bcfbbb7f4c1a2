import type { TerminalSettings } from '../../base/linux/termios.ts';

/** Flags and places of special characters, of termios(3) on Linux. */
const INPUT = { INLCR: 0o100, IGNCR: 0o200, ICRNL: 0o400, IXON: 0o2000, IUTF8: 0o40000 };
const LOCAL = { ISIG: 0o1, ICANON: 0o2, NOFLSH: 0o200, IEXTEN: 0o100000, EXTPROC: 0o200000 };
const KEY = {
  ...{ INTR: 0, QUIT: 1, ERASE: 2, KILL: 3, EOF: 4, START: 8, STOP: 9, SUSP: 10, EOL: 11, REPRINT: 12 },
  ...{ WERASE: 14, LNEXT: 15, EOL2: 16 },
};

/** The longest line that a terminal keeps. */
const LINE_MAX_BYTES = 4096;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

type Key = keyof typeof KEY;

/**
 * The line that is being typed at a terminal, as its line discipline has it: of a line that is not ended the kernel tells
 * nobody anything. The settings are to be those of the moment: the program changes them at will.
 */
export class TypedLine {
  #bytes: number[] = [];
  #is_quoted = false;

  /** Notes what is typed next; returns the signals that it makes the terminal send. */
  type(data: Uint8Array, settings: TerminalSettings): NodeJS.Signals[] {
    const signals = signalsOf(data, settings);
    if (!isCanonical(settings)) {
      this.#clear();
      return signals;
    }
    // What precedes the last newline says nothing of the line after it.
    for (const byte of data.subarray(Math.max(data.lastIndexOf(NEWLINE), 0))) this.#take(byte, settings);
    return signals;
  }

  /** What must be typed for the program to read an end; null where the settings have no such key. */
  typeEnd(settings: TerminalSettings): Buffer | null {
    const key = settings.characters[KEY.EOF];
    if (!isCanonical(settings) || !key) return null;
    // The first one ends a line that has begun, and only one at the beginning of a line is the end. A quoted one is text.
    const presses = 1 + (this.#bytes.length > 0 || this.#is_quoted ? 1 : 0) + (this.#is_quoted ? 1 : 0);
    this.#clear();
    return Buffer.alloc(presses, key);
  }

  #clear(): void {
    this.#bytes = [];
    this.#is_quoted = false;
  }

  #take(byte: number, settings: TerminalSettings): void {
    const key = this.#is_quoted ? null : keyOf(byte, settings);
    this.#is_quoted = key === 'LNEXT';
    switch (key) {
      case null:
        if (this.#bytes.length < LINE_MAX_BYTES) this.#bytes.push(byte);
        break;
      case 'INTR':
      case 'QUIT':
      case 'SUSP':
        if (!(settings.local & LOCAL.NOFLSH)) this.#clear();
        break;
      case 'NEWLINE':
      case 'EOF':
      case 'EOL':
      case 'EOL2':
      case 'KILL':
        this.#clear();
        break;
      case 'ERASE':
        this.#erase(settings.input);
        break;
      case 'WERASE':
        this.#eraseWord(settings.input);
        break;
      default: // not of the line
    }
  }

  #erase(input: number): void {
    let byte = this.#bytes.pop();
    while (input & INPUT.IUTF8 && byte !== undefined && (byte & 0xc0) === 0x80) byte = this.#bytes.pop();
  }

  /** As the kernel: back to the beginning of the last run of letters, digits and underscores. */
  #eraseWord(input: number): void {
    let has_word = false;
    while (this.#bytes.length > 0) {
      const is_word = /\w/.test(String.fromCharCode(this.#bytes.at(-1) as number));
      if (has_word && !is_word) return;
      has_word ||= is_word;
      this.#erase(input);
    }
  }
}

function isCanonical({ local }: TerminalSettings): boolean {
  return (local & LOCAL.ICANON) !== 0 && (local & LOCAL.EXTPROC) === 0;
}

/** The special character that a byte is, null where it is text. */
function keyOf(
  byte: number,
  { input, local, characters }: TerminalSettings,
): Key | 'NEWLINE' | 'IGNORED' | null {
  if (byte === RETURN && input & INPUT.IGNCR) return 'IGNORED';
  if (byte === RETURN && input & INPUT.ICRNL) return 'NEWLINE';
  if (byte === NEWLINE && !(input & INPUT.INLCR)) return 'NEWLINE';
  if (byte === 0) return null;
  const among = (keys: readonly Key[]) => keys.find((key) => characters[KEY[key]] === byte);
  return (
    (input & INPUT.IXON && among(['START', 'STOP'])) ||
    (local & LOCAL.ISIG && among(['INTR', 'QUIT', 'SUSP'])) ||
    among(['ERASE', 'KILL', 'EOF', 'EOL']) ||
    (local & LOCAL.IEXTEN && among(['WERASE', 'LNEXT', 'REPRINT', 'EOL2'])) ||
    null
  );
}

function signalsOf(data: Uint8Array, { local, characters }: TerminalSettings): NodeJS.Signals[] {
  const sends = (key: number | undefined) => local & LOCAL.ISIG && key && data.includes(key);
  const signals: NodeJS.Signals[] = [];
  if (sends(characters[KEY.INTR])) signals.push('SIGINT');
  if (sends(characters[KEY.QUIT])) signals.push('SIGQUIT');
  return signals;
}
