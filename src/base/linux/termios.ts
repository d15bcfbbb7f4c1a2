import { libc } from './libc.ts';

/** How a terminal takes what is typed. */
export interface TerminalSettings {
  /** `c_iflag`, of termios(3). */
  input: number;
  /** `c_lflag`. */
  local: number;
  /** `c_cc`: the special characters by their places. */
  characters: Uint8Array;
}

const call = { get: libc.func('int tcgetattr(int fd, void *settings)') };

/** More than the C library's structure takes on any machine: four words, a byte, the characters, two speeds. */
const STRUCT_BYTES = 128;
const CHARACTERS_AT = 17;
const CHARACTERS = 32;

/** The present settings of a terminal, by either of its ends; null if it has none any more. */
export function terminalSettings(fd: number): TerminalSettings | null {
  const settings = Buffer.alloc(STRUCT_BYTES);
  if (call.get(fd, settings) < 0) return null;
  return {
    input: settings.readUInt32LE(0),
    local: settings.readUInt32LE(12),
    characters: settings.subarray(CHARACTERS_AT, CHARACTERS_AT + CHARACTERS),
  };
}
