import { readFileSync } from 'node:fs';

const ROOT = new URL('../../../', import.meta.url);

/** A block of shell commands in a document. */
export interface ShellBlock {
  path: string;
  code: string;
  /** The paragraph in front of it, in which the document says what it needs. */
  before: string;
}

/** The blocks of shell commands in a document of the repository. */
export function shellBlocksIn(path: string): ShellBlock[] {
  const text = readFileSync(new URL(path, ROOT), 'utf8');
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(({ index, 1: code = '' }) => {
    const before = text.slice(0, index).trimEnd().split('\n\n').at(-1) ?? '';
    return { path, code, before };
  });
}
