import { describe, expect, it } from 'vitest';
import { width } from '../../../src/ctl/terminal/printable.ts';
import { type Column, table } from '../../../src/ctl/terminal/table.ts';

interface Row {
  id: string;
  state: string;
  time: string;
}

const COLUMNS: Column<Row>[] = [
  { title: 'STATE', cell: ({ state }) => state, style: (_, text) => text.toUpperCase() },
  { title: 'TIME', cell: ({ time }) => time, spare: 1 },
  { title: 'ID', cell: ({ id }) => id },
];
const ROWS: Row[] = [
  { id: 'evt_1', state: 'pending', time: '00:00' },
  { id: 'evt_22', state: 'failed', time: '00:01' },
];

describe('a table', () => {
  it('aligns its columns and styles their cells', () => {
    expect(table(COLUMNS, ROWS, null)).toEqual([
      'STATE    TIME   ID',
      'PENDING  00:00  evt_1',
      'FAILED   00:01  evt_22',
    ]);
  });

  it('leaves out spare columns before it cuts others', () => {
    expect(table(COLUMNS, ROWS, 16)).toEqual(['STATE    ID', 'PENDING  evt_1', 'FAILED   evt_22']);
  });

  it('cuts its last column as far as it may before it leaves out others, and keeps to the least widths', () => {
    const columns = COLUMNS.map((column) => (column.title === 'ID' ? { ...column, cut_to: 4 } : column));
    const [first, ...rest] = columns as [Column<Row>, ...Column<Row>[]];
    expect(table([{ ...first, least: 9 }, ...rest], ROWS, 22)).toEqual([
      'STATE      TIME   ID',
      'PENDING    00:00  evt…',
      'FAILED     00:01  evt…',
    ]);
  });

  it('is never wider than the terminal', () => {
    const plain = COLUMNS.map(({ title, cell, spare }) => ({ title, cell, spare: spare ?? 0 }));
    for (let columns = 1; columns < 30; columns++) {
      for (const line of table(plain, ROWS, columns)) expect(width(line)).toBeLessThanOrEqual(columns);
    }
    expect(table(plain, ROWS, 12)[2]).toBe('failed   ev…');
  });
});
