import type { FileEntry, FilePage } from '../../contract/files.ts';
import { call, send } from './http.ts';
import type { Place } from './place.ts';
import { problemOf } from './problem.ts';

/** A path as the API takes it: its bytes where they are not UTF-8. */
export type PathQuery = { path: string } | { path_base64: string };

/** The query that names an entry. */
export function queryOf({ path, path_base64 }: { path: string; path_base64?: string }): PathQuery {
  return path_base64 === undefined ? { path } : { path_base64 };
}

/** The routes of files. Contract section 4, "Files". */
export const files = {
  list: (place: Place, path: PathQuery, cursor: string | null, signal: AbortSignal) =>
    call<FilePage>('GET', `${place.path}/files/list`, { query: { ...path, limit: 1_000, cursor }, signal }),
  stat: (place: Place, path: PathQuery, signal: AbortSignal) =>
    call<FileEntry>('GET', `${place.path}/files/stat`, { query: { ...path }, signal }),
  /** The response with the bytes, from the first to the one before `end`. */
  read: (place: Place, path: PathQuery, signal: AbortSignal, end?: number) =>
    send('GET', `${place.path}/files`, {
      query: { ...path },
      signal,
      ...(end === undefined ? {} : { headers: { range: `bytes=0-${end - 1}` } }),
    }),
  /** The response with the beginning of a file, as far as `end`; an empty file has no range at all. */
  async readStart(place: Place, path: PathQuery, signal: AbortSignal, end: number): Promise<Response> {
    try {
      return await files.read(place, path, signal, end);
    } catch (error) {
      if (problemOf(error).code !== 'range_not_satisfiable') throw error;
      return files.read(place, path, signal);
    }
  },
  /** The response with a tar stream of a tree. */
  archive: (place: Place, path: PathQuery, signal: AbortSignal) =>
    send('GET', `${place.path}/files/archive`, { query: { ...path, format: 'tar.gz' }, signal }),
  /** Writes a whole file; `condition` is an ETag that it must still have, or null where it must not exist. */
  write: (place: Place, path: PathQuery, body: BodyInit, condition: string | null) =>
    call<{ etag: string; size: number }>('PUT', `${place.path}/files`, {
      query: { ...path, parents: true },
      body,
      headers: {
        'content-type': 'application/octet-stream',
        ...(condition === null ? { 'if-none-match': '*' } : { 'if-match': condition }),
      },
    }),
  makeFolder: (place: Place, path: string) =>
    call('POST', `${place.path}/files`, { query: { path, mkdir: true, recursive: true } }),
  move: (place: Place, source: string, destination: string) =>
    call('POST', `${place.path}/files/move`, { json: { source, destination } }),
  remove: (place: Place, path: PathQuery) =>
    call('DELETE', `${place.path}/files`, { query: { ...path, recursive: true } }),
};
