import type { FastifyRequest } from 'fastify';
import type { HttpExchange } from '../../../base/http/app.ts';
import type { Handlers } from '../../../base/http/serve.ts';
import { FILE_ROUTES } from '../../../contract/routes/files.ts';

/** A route of file operations. */
export interface FileRoute {
  answer: 'read' | 'stat' | 'list' | 'pack' | 'watch' | 'remove' | 'move' | 'copy' | 'write' | 'unpack';
  /** `lasting`: a connection that stays open for as long as its client wants. */
  kind: 'call' | 'transfer' | 'lasting';
  changes_files: boolean;
}

/** Answers the requests of all routes. A refusal is thrown. */
export type FileHandler = (route: FileRoute, exchange: HttpExchange) => Promise<unknown>;

/** A handler for each route of file operations. */
type FileHandlers = Handlers<typeof FILE_ROUTES>;

/** The handlers of file operations, all of which `handler` answers. Contract section 4, "Files". */
export function fileHandlers(handler: FileHandler): FileHandlers {
  const by =
    (id: keyof FileHandlers, answer: FileRoute['answer'], kind: FileRoute['kind']) =>
    // biome-ignore lint/suspicious/noExplicitAny: each answer is of its own route's shape.
    async ({ request, reply }: HttpExchange): Promise<any> => {
      const changes_files = FILE_ROUTES[id].access === 'write';
      const route = { answer, kind: isMade(request) ? 'call' : kind, changes_files } as const;
      return handled(handler, route, { request, reply });
    };
  return {
    downloadFile: by('downloadFile', 'read', 'transfer'),
    headFile: by('headFile', 'read', 'transfer'),
    statFile: by('statFile', 'stat', 'call'),
    listFiles: by('listFiles', 'list', 'call'),
    downloadArchive: by('downloadArchive', 'pack', 'transfer'),
    watchFiles: by('watchFiles', 'watch', 'lasting'),
    removeFile: by('removeFile', 'remove', 'call'),
    moveFile: by('moveFile', 'move', 'call'),
    copyFile: by('copyFile', 'copy', 'transfer'),
    createFile: by('createFile', 'write', 'transfer'),
    writeFile: by('writeFile', 'write', 'transfer'),
    uploadArchive: by('uploadArchive', 'unpack', 'transfer'),
  };
}

/** Whether a request makes a directory, for which it needs no bytes. */
function isMade({ query }: FastifyRequest): boolean {
  return (query as { mkdir?: boolean }).mkdir === true;
}

async function handled(handler: FileHandler, route: FileRoute, exchange: HttpExchange): Promise<unknown> {
  try {
    return await handler(route, exchange);
  } catch (error) {
    if (exchange.reply.raw.destroyed) {
      // The client has gone, and its work has been stopped.
      exchange.reply.hijack();
      return;
    }
    refuseBody(exchange);
    throw error;
  }
}

/** Has the client see a refusal although its body is still under way: the connection ends after the answer. */
function refuseBody({ request, reply }: HttpExchange): void {
  if (request.raw.complete) return;
  if (!reply.sent) reply.header('connection', 'close');
  request.raw.resume();
}
