import { Type } from 'typebox';
import { FILE_LIST_LIMIT } from '../defaults.ts';
import { closedObject, namedObject, orNull, Time } from './field.ts';
import { Flag, integerFrom, pageLimit } from './query.ts';

/** Schemas of file operations. Contract section 4, "Files". */

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
  depth: Type.Integer({ minimum: 1, maximum: 32, default: 1 }),
  limit: pageLimit(FILE_LIST_LIMIT, FILE_LIST_LIMIT),
  cursor: Type.Optional(Type.String()),
});

const mode = Type.Optional(
  Type.String({ pattern: '^0?[0-7]{3,4}$', description: 'an octal mode such as 0644' }),
);

/** The query of an upload; with `mkdir` that of a directory to make. */
export const FileWriteQuery = closedObject({
  ...path,
  mode,
  parents: Type.Boolean({ default: true }),
  mkdir: Flag,
  recursive: Flag,
});

/** The query of an archive to download. */
export const ArchiveQuery = closedObject({
  ...path,
  format: Type.Enum(['tar', 'tar.gz'], { default: 'tar' }),
  exact: Type.Boolean({ default: false, description: 'for a copy of the tree, with what is lost named' }),
});

/** The query of an archive to unpack. */
export const UnpackQuery = closedObject({
  ...path,
  exact: Type.Boolean({ default: false, description: 'take it as the copy of a tree, with modes whole' }),
});

/** The query of a removal. */
export const FileRemoveQuery = closedObject({ ...path, recursive: Flag });

/** The query of a watch, whose paths are in its frames. */
export const FileWatchQuery = closedObject({ user: path.user });

/** The query of a move or copy. */
export const TwoPathsQuery = closedObject({ user: path.user });

/** The body of a move or copy. */
export const TwoPathsBody = namedObject('TwoPaths', {
  source: Type.Optional(Type.String()),
  source_base64: Type.Optional(Type.String()),
  destination: Type.Optional(Type.String()),
  destination_base64: Type.Optional(Type.String()),
  overwrite: Type.Optional(Type.Boolean({ description: 'default: false' })),
});

/** A file or directory as the API shows it. */
export const FileEntryData = namedObject('FileEntry', {
  name: Type.String(),
  path: Type.String(),
  path_base64: Type.Optional(Type.String()),
  type: Type.Enum(['file', 'dir', 'symlink', 'other']),
  size: integerFrom(0),
  mode: Type.String(),
  mod_time: Time,
  is_link: Type.Boolean(),
  link_target: orNull(Type.String()),
  uid: Type.Integer(),
  gid: Type.Integer(),
  user: Type.String(),
  group: Type.String(),
});

/** A page of a directory's entries. */
export const FilePageData = namedObject('FilePage', {
  path: Type.String(),
  path_base64: Type.Optional(Type.String()),
  entries: Type.Array(FileEntryData),
  next_cursor: orNull(Type.String()),
});

/** A finished upload, or a directory that was asked for. */
export const WrittenData = Type.Union([
  namedObject('WrittenFile', {
    written: Type.Literal(true),
    path: Type.String(),
    path_base64: Type.Optional(Type.String()),
    size: integerFrom(0),
    etag: Type.String(),
  }),
  namedObject('MadeDirectory', { created: Type.Boolean() }),
]);

/** What was removed, moved or copied. */
export const DeletedData = namedObject('Deleted', { deleted: Type.Literal(true) });
export const MovedData = namedObject('Moved', { moved: Type.Literal(true) });
export const CopiedData = namedObject('Copied', { copied: Type.Literal(true) });

/** What was unpacked. */
export const UnpackedData = namedObject('Unpacked', { entries: integerFrom(0), bytes: integerFrom(0) });
