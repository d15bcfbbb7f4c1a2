/** How many `Host` lines a request has: Node keeps the first alone. */
export function hostLines(rawHeaders: string[]): number {
  return headerLines(rawHeaders, 'host');
}

/** The number of headers with this name, in lower case: of some Node keeps the first alone. */
export function headerLines(rawHeaders: string[], lower: string): number {
  let lines = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    if (name.length === lower.length && name.toLowerCase() === lower) lines += 1;
  }
  return lines;
}
