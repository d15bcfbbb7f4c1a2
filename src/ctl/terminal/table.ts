import { cut, width } from './printable.ts';

/**
 * A column of a table. If the terminal is too narrow, columns with the highest `spare` are dropped first, 0 never; before
 * that the last one is cut, to `cut_to` columns. `least`: its width, however short the cells are.
 */
export interface Column<Row> {
  title: string;
  cell(row: Row): string;
  /** Applied after padding, so that colours do not count as width. */
  style?(row: Row, text: string): string;
  spare?: number;
  least?: number;
  cut_to?: number;
}

const GAP = '  ';
/** Longest cell, in columns: every cell but those of the last column is padded to the widest of its column. */
const CELL_MAX_COLUMNS = 256;

/** The lines of a table, titles first, none wider than `columns` (null: no limit). */
export function table<Row>(of: Column<Row>[], rows: readonly Row[], columns: number | null): string[] {
  const laid_out = of.map((column, index) => {
    const texts = rows.map((row) => String(column.cell(row)));
    const cells = index === of.length - 1 ? texts : texts.map((text) => cut(text, CELL_MAX_COLUMNS));
    return {
      column,
      cells,
      width: cells.reduce(
        (most, cell) => Math.max(most, width(cell)),
        Math.max(width(column.title), column.least ?? 0),
      ),
    };
  });
  const narrowest = ({ column, width }: (typeof laid_out)[number]) => Math.min(width, column.cut_to ?? width);
  const total = () => laid_out.reduce((sum, each) => sum + narrowest(each) + GAP.length, -GAP.length);
  const limit = columns ?? Number.POSITIVE_INFINITY;
  while (total() > limit) {
    const spare = laid_out.reduce((most, each) => Math.max(most, each.column.spare ?? 0), 0);
    if (spare === 0) break;
    laid_out.splice(
      laid_out.findIndex((each) => each.column.spare === spare),
      1,
    );
  }

  const line = (
    cellOf: (each: (typeof laid_out)[number]) => [text: string, style?: (text: string) => string],
  ) => {
    let left = limit;
    const parts: string[] = [];
    for (const [index, each] of laid_out.entries()) {
      const [text, style] = cellOf(each);
      const room = Math.min(each.width, left);
      if (room <= 0) break;
      const shown = cut(text, room);
      const padding = index === laid_out.length - 1 ? '' : ' '.repeat(room - width(shown));
      parts.push((style ? style(shown) : shown) + padding);
      left -= room + GAP.length;
    }
    return parts.join(GAP).trimEnd();
  };

  return [
    line((each) => [each.column.title]),
    ...rows.map((row, index) =>
      line((each) => [each.cells[index] ?? '', (text) => each.column.style?.(row, text) ?? text]),
    ),
  ];
}
