/** Of this many edits, and of at most a third of its letters, a word is taken to be a misspelling of another. */
const EDITS_MAX = 3;

/** The word of `words` that `word` is most probably meant to be: the one with the fewest edits; null if none is close. */
export function closestTo(word: string, words: readonly string[]): string | null {
  let closest: string | null = null;
  let fewest = Math.min(EDITS_MAX, Math.floor(word.length / 3)) + 1;
  for (const each of words) {
    // Lengths alone rule most words out, and bound the work for a long one.
    if (Math.abs(each.length - word.length) >= fewest) continue;
    const edits = editsBetween(word.toLowerCase().replaceAll('-', '_'), each);
    if (edits < fewest) [closest, fewest] = [each, edits];
  }
  return closest;
}

/** How many letters must be inserted, removed or replaced to make one text the other (Levenshtein). */
function editsBetween(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = (previous[column - 1] as number) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const edited = Math.min(previous[column] as number, current[column - 1] as number) + 1;
      current.push(Math.min(replaced, edited));
    }
    previous = current;
  }
  return previous[to.length] as number;
}
