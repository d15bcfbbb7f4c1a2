/** Reads rows in the order of their sandboxes' ids, `limit` at a time; `read` gives those whose ids follow one. */
export async function* pagesById<Row extends { sandbox_id: string }>(
  limit: number,
  read: (after: string) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  for (let after = ''; ; ) {
    const rows = await read(after);
    if (rows.length > 0) yield rows;
    if (rows.length < limit) return;
    after = rows.at(-1)?.sandbox_id ?? '';
  }
}
