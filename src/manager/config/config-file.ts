import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { Given } from '../../base/options.ts';
import { StartError } from '../../contract/errors.ts';

/** The keys and values of a `--config` file in YAML; an empty file has none. Throws StartError with exit code 2. */
export function readConfigFile(path: string): Given {
  const content = parsed(path);
  if (content === null || content === undefined) return {};
  if (typeof content === 'object' && !Array.isArray(content)) return content as Given;
  throw new StartError(`--config ${path} must be a mapping of keys to values`, 2);
}

function parsed(path: string): unknown {
  try {
    return parse(readFileSync(path, 'utf8'), { prettyErrors: true });
  } catch (error) {
    const [line] = (error as Error).message.split('\n');
    throw new StartError(`--config ${path} cannot be read: ${line}`, 2, error);
  }
}
