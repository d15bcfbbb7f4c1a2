import type { paths } from './openapi/daemon-api.ts';
import { cursorPages } from './pages.ts';
import type { AnswerOf, CallOptions, InitOf, RawBody } from './routes.ts';
import type { SandboxRoutes } from './sandbox-routes.ts';

/** A file or directory as both programs show it. */
export type FileEntry = AnswerOf<paths, '/api/v1/files/stat', 'get'>;

/** A written file. */
export type Written = Extract<AnswerOf<paths, '/api/v1/files', 'put'>, { written: true }>;

type Options<Path extends keyof paths, Method> = CallOptions &
  Omit<NonNullable<InitOf<paths, Path, Method> extends { query?: infer Query } ? Query : never>, 'path'>;

const TAR = 'application/x-tar';

/**
 * Files of a sandbox, of any size. Options are those of the routes' queries, such as `user` and `mode`, and conditions as
 * `headers`. Contract section 4, "Files".
 */
export class Files {
  readonly #routes: SandboxRoutes;

  constructor(routes: SandboxRoutes) {
    this.#routes = routes;
  }

  /** The file as a response whose `body` streams; with `headers: { Range: 'bytes=0-99' }` a part of it. */
  download(path: string, options: Options<'/api/v1/files', 'get'> = {}): Promise<Response> {
    return this.#routes.send('GET', '/files', located(path, options));
  }

  /** Writes a file, all of it or nothing. A stream is sent as it comes, and only once; browsers may not take one. */
  async upload(path: string, body: RawBody, options: Options<'/api/v1/files', 'put'> = {}): Promise<Written> {
    return (await this.#routes.data('PUT', '/files', { ...located(path, options), body })) as Written;
  }

  /** The tree below a path as a tar archive, a response whose `body` streams. */
  downloadArchive(path: string, options: Options<'/api/v1/files/archive', 'get'> = {}): Promise<Response> {
    return this.#routes.send('GET', '/files/archive', located(path, options));
  }

  /** Unpacks a tar or tar.gz archive into a directory, which is made where it is missing. */
  async uploadArchive(path: string, body: RawBody, options: Options<'/api/v1/files/archive', 'put'> = {}) {
    const { headers, ...call } = located(path, options);
    const sent = { ...call, headers: { 'content-type': TAR, ...headers }, body };
    return (await this.#routes.data('PUT', '/files/archive', sent)) as AnswerOf<
      paths,
      '/api/v1/files/archive',
      'put'
    >;
  }

  /** The entries of a directory, page by page, sorted by path. */
  list(path: string, options: Options<'/api/v1/files/list', 'get'> = {}): AsyncGenerator<FileEntry, void> {
    const call = located(path, options);
    return cursorPages(call.query.cursor as string | undefined, async (cursor) => {
      const page = await this.#routes.data('GET', '/files/list', {
        ...call,
        query: { ...call.query, cursor },
      });
      const { entries, next_cursor } = page as AnswerOf<paths, '/api/v1/files/list', 'get'>;
      return { items: entries, next_cursor };
    });
  }
}

function located(path: string, { headers, signal, retry, ...query }: CallOptions) {
  const options: CallOptions = {
    ...(headers ? { headers } : {}),
    ...(signal ? { signal } : {}),
    ...(retry === undefined ? {} : { retry }),
  };
  return { ...options, query: { path, ...(query as Record<string, unknown>) } as Record<string, unknown> };
}
