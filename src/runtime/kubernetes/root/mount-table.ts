/** What is mounted directly on the root, in the order in which it was, from the text of `/proc/self/mountinfo`. */
export function topMounts(text: string): string[] {
  const mounts = text
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [id, parent, , , path = ''] = line.split(' ');
      return { id, parent, path: unescaped(path) };
    });
  const root = mounts.findLast(({ path }) => path === '/');
  return mounts.filter(({ parent, path }) => parent === root?.id && path !== '/').map(({ path }) => path);
}

/** As proc(5) writes a path: spaces, tabs, newlines and backslashes in octal. */
function unescaped(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}
