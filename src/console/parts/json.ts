import { visibleLines } from '../base/format.ts';

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+|"/gs;

/**
 * JSON over several lines for reading, with every number and text as it was written: it is spaced, never parsed. Text that
 * is no JSON comes with its words.
 */
export function prettyJson(text: string): string {
  const tokens = text.match(TOKEN) ?? [];
  const out: string[] = [];
  let depth = 0;
  const newLine = () => void out.push('\n', '  '.repeat(Math.max(0, depth)));
  tokens.forEach((token, at) => {
    const opens = token === '{' || token === '[';
    const closes = token === '}' || token === ']';
    if (closes) {
      depth -= 1;
      if (!/^[{[]$/.test(tokens[at - 1] ?? '')) newLine();
    }
    out.push(token === ':' ? ': ' : token);
    if (opens) depth += 1;
    if (token === ',' || (opens && !/^[}\]]$/.test(tokens[at + 1] ?? ''))) newLine();
  });
  return visibleLines(out.join(''));
}
