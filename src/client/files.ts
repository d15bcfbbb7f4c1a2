import { SandboxdError, unreachable } from './error.ts';
import type { paths } from './openapi/daemon-api.ts';
import { cursorPages } from './pages.ts';
import type { AnswerOf, CallOptions, InitOf, RawBody } from './routes.ts';
import type { SandboxRoutes } from './sandbox-routes.ts';
import { joined } from './streams/bytes.ts';

/** A file or directory as both programs show it. */
export type FileEntry = AnswerOf<paths, '/api/v1/files/stat', 'get'>;

/** A written file. */
export type Written = Extract<AnswerOf<paths, '/api/v1/files', 'put'>, { written: true }>;

type Options<Path extends keyof paths, Method> = CallOptions &
  Omit<NonNullable<InitOf<paths, Path, Method> extends { query?: infer Query } ? Query : never>, 'path'>;

const TAR = 'application/x-tar';
const BYTES = 'application/octet-stream';
/** What is read into memory is no more than this, unless its reader allows it: a hostile sandbox decides how long it is. */
const READ_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Files of a sandbox, of any size. Options are those of the routes' queries, such as `user` and `mode`, and conditions as
 * `headers`. Contract section 4, "Files".
 */
export class Files {
  readonly #routes: SandboxRoutes;

  constructor(routes: SandboxRoutes) {
    this.#routes = routes;
  }

  /**
   * The bytes of a file. Throws `bad_answer` where there are more than `max_bytes` (default 64 MiB) of them; `download` has
   * no limit.
   */
  async read(
    path: string,
    { max_bytes = READ_MAX_BYTES, ...options }: Options<'/api/v1/files', 'get'> & { max_bytes?: number } = {},
  ): Promise<Uint8Array<ArrayBuffer>> {
    const { headers, ...call } = located(path, options);
    const answer = await this.#routes.ask('GET', '/files', {
      ...call,
      headers: { accept: BYTES, ...headers },
    });
    const pieces: Uint8Array[] = [];
    let left = max_bytes;
    try {
      for await (const piece of answer.pieces()) {
        left -= piece.length;
        if (left < 0) {
          const message = `${path} has more than ${max_bytes} bytes`;
          throw new SandboxdError({ code: 'bad_answer', message, status: answer.status });
        }
        pieces.push(piece);
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      throw error instanceof SandboxdError ? error : unreachable(error);
    }
    return joined(pieces);
  }

  /** The text of a file, as UTF-8; see `read`. */
  async readText(
    path: string,
    options: Options<'/api/v1/files', 'get'> & { max_bytes?: number } = {},
  ): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** Writes a file, all of it or nothing: `upload` of what is in memory. */
  write(
    path: string,
    content: string | Uint8Array<ArrayBuffer>,
    options: Options<'/api/v1/files', 'put'> = {},
  ): Promise<Written> {
    return this.upload(path, content, options);
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

function located(path: string, { headers, signal, retry, timeout_ms, ...query }: CallOptions) {
  const options: CallOptions = {
    ...(headers ? { headers } : {}),
    ...(signal ? { signal } : {}),
    ...(retry === undefined ? {} : { retry }),
    ...(timeout_ms === undefined ? {} : { timeout_ms }),
  };
  return { ...options, query: { path, ...(query as Record<string, unknown>) } as Record<string, unknown> };
}
