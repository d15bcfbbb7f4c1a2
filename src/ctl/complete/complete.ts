import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { bashReplacement, readBashLine } from './bash-line.ts';
import { candidates } from './candidates.ts';
import { typedWords } from './typed-words.ts';

/** Time for an answer, in ms: with the start of the program less than 2 s, as somebody waits at the keyboard. */
export const COMPLETE_TIMEOUT_MS = 1_500;

/**
 * The candidates for the word at the cursor, none where they cannot be found out. `args` are what a script passes on:
 * `bash`, the line up to the cursor and `COMP_WORDBREAKS`, for which the candidates are what bash is to insert; or `words`
 * and the words after the program's name. `takesValue`: whether an option has a value.
 * Contract section 4, "Completion in a shell".
 */
export async function complete(
  args: readonly string[],
  takesValue: (flag: string) => boolean,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const [shell, ...rest] = args;
  const line = shell === 'bash' ? readBashLine(rest[0] ?? '', rest[1] ?? '') : null;
  if (shell === 'bash' && line === null) return [];
  const words = line === null ? rest : line.words.slice(1);
  if (words.length === 0 || words.slice(0, -1).includes('--')) return [];
  const typed = typedWords(words, takesValue);
  const tokenFile = withHome(typed.target.tokenFile, env);
  const stateDir = withHome(typed.target.stateDir, env);
  const target = { ...typed.target, tokenFile, stateDir };
  try {
    // A pipe would hold this up until somebody writes to it.
    if (tokenFile !== undefined && !statSync(tokenFile).isFile()) return [];
    const found = await candidates({ ...typed, target }, env);
    return line === null ? found : found.flatMap((each) => bashReplacement(each, line) ?? []);
  } catch {
    return [];
  }
}

function withHome(path: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  return path?.startsWith('~/') ? join(env.HOME || homedir(), path.slice(2)) : path;
}
