/** How many characters of these ids tell them apart, at least `least`. */
export function distinctLength(ids: readonly string[], least: number): number {
  const sorted = ids.toSorted();
  return sorted.reduce((longest, id, i) => {
    const before = sorted[i - 1] ?? '';
    let same = 0;
    while (same < id.length && id[same] === before[same]) same += 1;
    return Math.max(longest, same === id.length ? 0 : same + 1);
  }, least);
}
