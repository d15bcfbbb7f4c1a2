import { readFileSync } from 'node:fs';
import { EXIT, Failure, reason } from '../failure.ts';

/**
 * What a file of a secret or token holds, less one trailing newline. Fails as bad usage where it cannot be read
 * or is empty; the message names the path and never what is in it. Source: contract section 4.
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
