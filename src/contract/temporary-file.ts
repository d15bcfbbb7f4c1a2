/** The name of a file that is being uploaded, beside its target: the watch never reports it, and lists leave it out. */
const TEMPORARY = /^\.sandboxd-upload-[0-9a-f]{24}$/;

/** How such names look, for people. */
export const TEMPORARY_PATTERN = '.sandboxd-upload-<24 hex digits>';

/** The temporary name with this id of 24 hex digits. Contract section 4, "Files". */
export function temporaryName(id: string): string {
  return `.sandboxd-upload-${id}`;
}

/** Whether a name is that of an upload under way, or of what a killed daemon has left of one. */
export function isTemporaryName(name: string): boolean {
  return name.startsWith('.sandboxd-') && TEMPORARY.test(name);
}
