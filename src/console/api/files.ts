import { SandboxdError } from '../../client/error.ts';
import { LIST_LIMIT_MAX } from '../../contract/defaults.ts';
import type { Place } from './place.ts';

/** A path as the API takes it: its bytes where they are not UTF-8. */
export type PathQuery = { path: string } | { path_base64: string };

/** The query that names an entry. */
export function queryOf({ path, path_base64 }: { path: string; path_base64?: string }): PathQuery {
  return path_base64 === undefined ? { path } : { path_base64 };
}

/** The routes of files. Contract section 4, "Files". */
export const files = {
  list: ({ sandbox }: Place, path: PathQuery, cursor: string | null, signal: AbortSignal) =>
    sandbox.GET('/api/v1/files/list', {
      query: { ...path, limit: LIST_LIMIT_MAX, ...(cursor === null ? {} : { cursor }) },
      signal,
    }),
  /** The response with the bytes, from the first to the one before `end`. */
  read: ({ sandbox }: Place, path: PathQuery, signal: AbortSignal, end?: number) =>
    sandbox.GET('/api/v1/files', {
      query: path,
      signal,
      ...(end === undefined ? {} : { headers: { range: `bytes=0-${end - 1}` } }),
    }),
  /** The response with the beginning of a file, as far as `end`; an empty file has no range at all. */
  async readStart(place: Place, path: PathQuery, signal: AbortSignal, end: number): Promise<Response> {
    try {
      return await files.read(place, path, signal, end);
    } catch (error) {
      if (!(error instanceof SandboxdError) || error.code !== 'range_not_satisfiable') throw error;
      return files.read(place, path, signal);
    }
  },
  /** The response with a tar stream of a tree. */
  archive: ({ sandbox }: Place, path: PathQuery, signal: AbortSignal) =>
    sandbox.GET('/api/v1/files/archive', { query: { ...path, format: 'tar.gz' }, signal }),
  /** Writes a whole file; `condition` is an ETag that it must still have, or null where it must not exist. */
  write: ({ sandbox }: Place, path: PathQuery, body: string, condition: string | null) =>
    sandbox.PUT('/api/v1/files', {
      query: { ...path, parents: true },
      body,
      // Written once: where the answer was lost, a second attempt would find the first's file and call it a conflict.
      retry: false,
      headers: condition === null ? { 'if-none-match': '*' } : { 'if-match': condition },
    }),
  makeFolder: ({ sandbox }: Place, path: string) =>
    sandbox.POST('/api/v1/files', { query: { path, mkdir: true, recursive: true }, body: '' }),
  move: ({ sandbox }: Place, source: string, destination: string) =>
    sandbox.POST('/api/v1/files/move', { body: { source, destination } }),
  remove: ({ sandbox }: Place, path: PathQuery) =>
    sandbox.DELETE('/api/v1/files', { query: { ...path, recursive: true } }),
};
