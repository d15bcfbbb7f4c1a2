/** The bits of a mode that are not its type: permissions, and setuid, setgid and sticky. */
export const MODE_BITS = 0o7777;
/** Setuid and setgid: whoever runs a file with them runs it as its owner or group. */
export const SET_IDS = 0o6000;

/** A mode as requests and answers have it: four octal digits. */
export function modeText(mode: number): string {
  return (mode & MODE_BITS).toString(8).padStart(4, '0');
}
