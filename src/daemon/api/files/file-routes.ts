import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpApp, type HttpExchange, withStreamedBodies } from '../../../base/http/app.ts';
import {
  ArchiveQuery,
  FileListQuery,
  FileQuery,
  FileRemoveQuery,
  FileWatchQuery,
  FileWriteQuery,
  TwoPathsBody,
  TwoPathsQuery,
  UnpackQuery,
} from '../../../contract/schema/files.ts';

/** A route of file operations. */
export interface FileRoute {
  answer: 'read' | 'stat' | 'list' | 'pack' | 'watch' | 'remove' | 'move' | 'copy' | 'write' | 'unpack';
  /** `lasting`: a connection that stays open for as long as its client wants. */
  kind: 'call' | 'transfer' | 'lasting';
  changes_files: boolean;
}

/** Answers the requests of all routes. A refusal is thrown. */
export type FileHandler = (route: FileRoute, exchange: HttpExchange) => Promise<unknown>;

const PATH = '/api/v1/files';

/** Adds the routes of file operations. Source: contract section 4, "Files". */
export async function registerFileRoutes(app: HttpApp, handler: FileHandler): Promise<void> {
  const by =
    (answer: FileRoute['answer'], kind: FileRoute['kind'], changes_files = false) =>
    (request: FastifyRequest, reply: FastifyReply) => {
      const route = { answer, kind: isMade(request) ? 'call' : kind, changes_files } as const;
      return handled(handler, route, { request, reply });
    };
  const one = { querystring: FileQuery };
  const two = { querystring: TwoPathsQuery, body: TwoPathsBody };
  app.get(PATH, { schema: one }, by('read', 'transfer'));
  app.head(PATH, { schema: one }, by('read', 'transfer'));
  app.get(`${PATH}/stat`, { schema: one }, by('stat', 'call'));
  app.get(`${PATH}/list`, { schema: { querystring: FileListQuery } }, by('list', 'call'));
  app.get(`${PATH}/archive`, { schema: { querystring: ArchiveQuery } }, by('pack', 'transfer'));
  app.get(`${PATH}/watch`, { schema: { querystring: FileWatchQuery } }, by('watch', 'lasting'));
  app.delete(PATH, { schema: { querystring: FileRemoveQuery } }, by('remove', 'call', true));
  app.post(`${PATH}/move`, { schema: two }, by('move', 'call', true));
  app.post(`${PATH}/copy`, { schema: two }, by('copy', 'transfer', true));
  await withStreamedBodies(app, (streamed) => {
    const write = { schema: { querystring: FileWriteQuery } };
    streamed.post(PATH, write, by('write', 'transfer', true));
    streamed.put(PATH, write, by('write', 'transfer', true));
    streamed.put(`${PATH}/archive`, { schema: { querystring: UnpackQuery } }, by('unpack', 'transfer', true));
  });
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
