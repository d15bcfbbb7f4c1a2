import { readFileSync } from 'node:fs';
import { EXIT, Failure, reason } from '../failure.ts';

/**
 * The content of a file with a secret or token, less one trailing newline. A file that cannot be read or is empty is a
 * usage error; the message names the path and never the content.
 */
export function readSecretFile(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Failure(EXIT.usage, `cannot read ${path}: ${reason(error)}`);
  }
  const secret = text.replace(/\r?\n$/, '');
  if (secret === '') throw new Failure(EXIT.usage, `${path} is empty`);
  return secret;
}
