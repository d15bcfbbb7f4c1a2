import type { Loss } from '../../files/archive/tree-copy.ts';
import { shownBytes } from '../../files/byte-path.ts';
import { EXIT, type ExitCode } from '../failure.ts';
import type { Output } from '../terminal/output.ts';

/** Of the losses of one tree, how many are named, and how much of what a sandbox says of one is shown. */
const NAMED_MAX = 20;
const SHOWN_MAX = 200;

/** What the copy of a tree does not keep: the first losses by name, and how many more there are. */
export class Losses {
  readonly #shown_top: string;
  readonly #lines: string[] = [];
  #count = 0;
  #exit_code: ExitCode = EXIT.ok;

  /** `shown_top` is the source as the user names it. */
  constructor(shown_top: string) {
    this.#shown_top = shown_top.replace(/\/+$/, '');
  }

  /** Takes one. */
  add({ path, what, is_failure }: Loss): void {
    if (is_failure) this.#exit_code = EXIT.failed;
    if (++this.#count > NAMED_MAX) return;
    const name = path === '' ? this.#shown_top : `${this.#shown_top}/${shownBytes(path).text}`;
    this.#lines.push(`sandboxctl: ${name} ${what.slice(0, SHOWN_MAX)}`);
  }

  /** Names them; returns the exit code of the copy. */
  async tell(err: Output): Promise<ExitCode> {
    await err.lines(this.#lines);
    const more = this.#count - this.#lines.length;
    if (more > 0) await err.line(`sandboxctl: and ${more} more in ${this.#shown_top}`);
    return this.#exit_code;
  }
}
