import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFileNow } from '../../base/durable-file.ts';
import { kernelRandom } from '../../base/entropy.ts';
import { StartError } from '../../contract/errors.ts';
import type { SandboxPlace } from '../runtime.ts';

/** Cannot be the id of a sandbox. */
const ID_FILE = '.data-dir-id';
const ID_BYTES = 16;
const ID = /^[0-9a-f]{32}\n$/;

/** The data directory of local sandboxes, with its identity. Source: contract section 7, "What runs and what is recorded". */
export class DataDir implements SandboxPlace {
  readonly name: string;
  readonly #file: string;

  constructor(path: string) {
    this.name = `--data-dir ${path}`;
    this.#file = join(path, ID_FILE);
  }

  /** See `SandboxPlace`. */
  id(): string | null {
    let text: string;
    try {
      text = readFileSync(this.#file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw new StartError(`${this.name}: ${(error as Error).message}`, 1, error);
    }
    if (!ID.test(text)) throw new StartError(`${this.name}: ${ID_FILE} in it holds no id`, 2);
    return text.trimEnd();
  }

  /** See `SandboxPlace`. Of managers that start together one makes the file. */
  mark(): string {
    try {
      createFileNow(this.#file, `${kernelRandom(ID_BYTES).toString('hex')}\n`);
    } catch (error) {
      throw new StartError(`${this.name}: ${(error as Error).message}`, 1, error);
    }
    return this.id() as string;
  }
}
