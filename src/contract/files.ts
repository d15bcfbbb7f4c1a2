import { type Static, Type } from 'typebox';
import { FILE_LIST_LIMIT } from './defaults.ts';
import {
  closedObject,
  defaulted,
  Flag,
  namedObject,
  OptionalText,
  pageLimit,
  Text,
  Time,
  Whole,
} from './field.ts';

/** File operations. Contract section 4, "Files". */

const path = {
  path: Type.Optional(Type.String({ description: 'an absolute path' })),
  path_base64: Type.Optional(
    Type.String({ description: 'in place of path: the base64 of a path that is not UTF-8' }),
  ),
  user: Type.Optional(Type.String({ minLength: 1, description: 'the account to act as' })),
};

/** The query of routes that take a path alone. */
export const FileQuery = closedObject(path);

/** The query of a list. */
export const FileListQuery = closedObject({
  ...path,
  depth: defaulted(Type.Integer({ minimum: 1, maximum: 32, default: 1 })),
  limit: pageLimit(FILE_LIST_LIMIT, FILE_LIST_LIMIT),
  cursor: Type.Optional(Text),
});

const mode = Type.Optional(
  Type.String({ pattern: '^0?[0-7]{3,4}$', description: 'an octal mode such as 0644' }),
);

/** The query of an upload; with `mkdir` that of a directory to make. */
export const FileWriteQuery = closedObject({
  ...path,
  mode,
  parents: defaulted(Type.Boolean({ default: true })),
  mkdir: Flag,
  recursive: Flag,
});

/** The query of an archive to download. */
export const ArchiveQuery = closedObject({
  ...path,
  format: defaulted(Type.Enum(['tar', 'tar.gz'], { default: 'tar' })),
  exact: defaulted(
    Type.Boolean({ default: false, description: 'for a copy of the tree, with what is lost named' }),
  ),
});

/** The query of an archive to unpack. */
export const UnpackQuery = closedObject({
  ...path,
  exact: defaulted(
    Type.Boolean({ default: false, description: 'take it as the copy of a tree, with modes whole' }),
  ),
});

/** The query of a removal. */
export const FileRemoveQuery = closedObject({ ...path, recursive: Flag });

/** The query of a watch, whose paths are in its frames. */
export const FileWatchQuery = closedObject({ user: path.user });

/** The query of a move or copy. */
export const TwoPathsQuery = closedObject({ user: path.user });

/** The body of a move or copy. */
export const TwoPathsBody = namedObject('TwoPaths', {
  source: Type.Optional(Text),
  source_base64: Type.Optional(Text),
  destination: Type.Optional(Text),
  destination_base64: Type.Optional(Text),
  overwrite: Type.Optional(Type.Boolean({ description: 'default: false' })),
});

/** A file or directory as the API shows it. */
export const FileEntryData = namedObject('FileEntry', {
  name: Text,
  path: Text,
  // The bytes of a path that is not UTF-8; then `path` holds U+FFFD in their place.
  path_base64: Type.Optional(Text),
  // Of what a link leads to, like all that follows up to `mod_time`; `symlink` leads nowhere, or to where it may not be followed.
  type: Type.Enum(['file', 'dir', 'symlink', 'other']),
  // In bytes.
  size: Whole,
  // Four octal digits, such as `0644`.
  mode: Text,
  mod_time: Time,
  // Whether the path itself is a link.
  is_link: Type.Boolean(),
  link_target: OptionalText,
  uid: Type.Integer(),
  gid: Type.Integer(),
  // The account's name, or its number as text.
  user: Text,
  group: Text,
});
export type FileEntry = Static<typeof FileEntryData>;
export type FileType = FileEntry['type'];

/** A page of a directory's entries, sorted by the bytes of their paths; `next_cursor` is null at the end. */
export const FilePageData = namedObject('FilePage', {
  path: Text,
  path_base64: Type.Optional(Text),
  entries: Type.Array(FileEntryData),
  next_cursor: OptionalText,
});
export type FilePage = Static<typeof FilePageData>;

/** A finished upload, or a directory that was asked for. */
export const WrittenData = Type.Union([
  namedObject('WrittenFile', {
    written: Type.Literal(true),
    path: Text,
    path_base64: Type.Optional(Text),
    size: Whole,
    etag: Text,
  }),
  namedObject('MadeDirectory', { created: Type.Boolean() }),
]);

/** What was removed, moved or copied. */
export const DeletedData = namedObject('Deleted', { deleted: Type.Literal(true) });
export const MovedData = namedObject('Moved', { moved: Type.Literal(true) });
export const CopiedData = namedObject('Copied', { copied: Type.Literal(true) });

/** What was unpacked. */
export const UnpackedData = namedObject('Unpacked', { entries: Whole, bytes: Whole });
