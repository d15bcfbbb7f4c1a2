/** What a path is. `symlink`: a link that leads nowhere, or to where it may not be followed. */
export type FileType = 'file' | 'dir' | 'symlink' | 'other';

/** A file or directory as the API shows it. Contract section 4, "Files". */
export interface FileEntry {
  name: string;
  path: string;
  /** The bytes of a path that is not UTF-8; then `path` holds U+FFFD in their place. */
  path_base64?: string;
  /** Of what a link leads to, like all that follows up to `mod_time`. */
  type: FileType;
  /** In bytes. */
  size: number;
  /** Four octal digits, such as `0644`. */
  mode: string;
  /** RFC 3339. */
  mod_time: string;
  /** Whether the path itself is a link. */
  is_link: boolean;
  link_target: string | null;
  uid: number;
  gid: number;
  /** The account's name, or its number as text. */
  user: string;
  group: string;
}

/** A page of a directory's entries, sorted by the bytes of their paths. */
export interface FilePage {
  path: string;
  path_base64?: string;
  entries: FileEntry[];
  /** Null at the end. */
  next_cursor: string | null;
}
