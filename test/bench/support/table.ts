/** `broken`: what must never happen did; `missed`: slower than wanted here and now. */
export type Verdict = 'ok' | 'missed' | 'broken' | 'skipped';

/** One line of the table; `bare` is what the bare operation came to in the same run. */
export interface Row {
  name: string;
  bare: string;
  ours: string;
  ratio: string;
  wanted: string;
  verdict: Verdict;
  /** What `ours` and `ratio` show, where they are numbers: to compare builds by. */
  measured?: { ours: number; ratio: number };
}

const COLUMNS = ['name', 'bare', 'ours', 'ratio', 'wanted', 'verdict'] as const;
const HEADINGS: Row = {
  name: 'benchmark',
  bare: 'bare',
  ours: 'ours',
  ratio: 'ratio',
  wanted: 'wanted',
  verdict: 'ok?' as Verdict,
};

/** Both sides of a comparison, as numbers with one unit. */
export interface Comparison {
  name: string;
  bare: number;
  ours: number;
  unit: string;
  /** Where the ratio was taken from pairs, one after another, rather than from the two figures. */
  ratio?: number;
  wanted: number;
  wants: 'at least' | 'at most';
}

/** The row of a comparison. */
export function comparison({ name, bare, ours, unit, ratio = ours / bare, wanted, wants }: Comparison): Row {
  const is_ok = wants === 'at least' ? ratio >= wanted : ratio <= wanted;
  return {
    name,
    bare: `${figure(bare)} ${unit}`,
    ours: `${figure(ours)} ${unit}`,
    ratio: `${figure(ratio)} ×`,
    wanted: `${wants === 'at least' ? '≥' : '≤'} ${wanted} ×`,
    verdict: is_ok ? 'ok' : 'missed',
    measured: { ours, ratio },
  };
}

/** The row of a benchmark that this machine cannot run. */
export function skipped(name: string, why: string): Row {
  return { name, bare: '', ours: '', ratio: '', wanted: `skipped: ${why}`, verdict: 'skipped' };
}

/** Three digits that count. */
export function figure(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en').replaceAll(',', ' ');
  return String(Number(value.toPrecision(3)));
}

/** All rows, with columns as wide as they need. */
export function table(rows: Row[]): string {
  return textTable([HEADINGS, ...rows].map((row) => COLUMNS.map((column) => row[column])));
}

/** Lines of cells, the first of them the headings, with columns as wide as they need. */
export function textTable(lines: string[][]): string {
  const [headings = [], ...rest] = lines;
  const widths = headings.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  const rule = widths.map((width) => '-'.repeat(width));
  return [headings, rule, ...rest]
    .map((line) => line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '))
    .join('\n');
}
