import type { BytePath } from '../byte-path.ts';

/** Something that the copy of a tree does not keep. */
export interface Loss {
  /** Below the top of the tree; empty for the top itself. */
  path: BytePath;
  /** What about it, as in `is a socket, which is left out`. */
  what: string;
  /** Whether the copy is incomplete without it. */
  is_failure: boolean;
}

/** How an archive is unpacked as the copy of a tree, where any other archive is held to what is safe for everyone. */
export interface TreeCopy {
  /** Whether its files may get setuid and setgid, and its links may lead anywhere. */
  is_trusted: boolean;
  onLoss(loss: Loss): void;
}

/** What a file may lack in its copy. */
export const SETS_IDS = 'has setuid or setgid, which only -p keeps';
