import type { BytePath } from '../byte-path.ts';

/** Something that a copy of a tree does not keep. */
export interface Loss {
  /** Below the top of the tree. */
  path: BytePath;
  /** What about it, as in `is a socket`. */
  what: string;
  /** Whether nothing of it is there; otherwise it is, and lacks something. */
  is_left_out: boolean;
}

/** How an archive is unpacked as the copy of a tree, where any other archive is held to what is safe for everyone. */
export interface TreeCopy {
  /** Whether its files may get setuid and setgid. */
  is_trusted: boolean;
  onLoss(loss: Loss): void;
}

/** What a file may lack in its copy. */
export const HAS_SET_IDS = 'has setuid or setgid';
