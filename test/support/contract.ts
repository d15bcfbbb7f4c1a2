import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const text = readFileSync(resolve(import.meta.dirname, '../../src/contract/README.md'), 'utf8');

/** The rows of the table under a line of the contract that begins with `heading`, cell by cell, without its head. */
export function contractTable(heading: string): string[][] {
  const lines = text.split('\n');
  const begin = lines.findIndex((line) => line.startsWith(heading));
  if (begin < 0) throw new Error(`the contract has no line that begins with ${heading}`);
  const first = lines.findIndex((line, n) => n > begin && line.startsWith('|'));
  const last = lines.findIndex((line, n) => n > first && !line.startsWith('|'));
  return lines.slice(first + 2, last).map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The words in backquotes in the sentence of the contract that holds this text. */
export function contractWords(beginning: string): string[] {
  const at = text.indexOf(beginning);
  if (at < 0) throw new Error(`the contract does not say: ${beginning}`);
  const [sentence = ''] = text.slice(at).split(/[.):](?:\s|$|,)/);
  return [...sentence.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string);
}
