/** A name in a folder. */
export function inside(folder: string, name: string): string {
  return `${folder.replace(/\/$/, '')}/${name}`;
}

/** The folders on the way to a path, the root first: name and path of each. */
export function trailOf(path: string): { name: string; path: string }[] {
  const names = path.split('/').filter((each) => each !== '');
  return [
    { name: '/', path: '/' },
    ...names.map((name, index) => ({ name, path: `/${names.slice(0, index + 1).join('/')}` })),
  ];
}
