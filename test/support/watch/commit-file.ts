import type { TreeBatch } from '../../../src/watch/index/tree-store.ts';

/** The commits in a file of JSON lines; a line that was cut off is no commit. */
export function readCommits(text: string): TreeBatch[] {
  return text.split('\n').flatMap((line) => {
    try {
      return [JSON.parse(line) as TreeBatch];
    } catch {
      return [];
    }
  });
}
