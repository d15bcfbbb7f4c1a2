import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpApp, type HttpExchange, withStreamedBodies } from '../../../base/http/app.ts';
import { ApiError } from '../../../contract/errors.ts';
import type { SandboxState } from '../../../contract/sandboxes.ts';
import {
  ArchiveQuery,
  FileListQuery,
  FileQuery,
  FileRemoveQuery,
  FileWatchQuery,
  FileWriteQuery,
  TwoPathsBody,
  TwoPathsQuery,
} from '../../../contract/schema/files.ts';
import type { RoutedFiles } from './file-service.ts';

/** The slice of the daemon that the file routes use. */
export interface FileContext {
  readonly state: SandboxState | 'starting';
  /** Loaded with the first request for files. */
  files(): Promise<RoutedFiles>;
}

/** The name of the function that answers a request; loaded with the first one. */
type AnswerName = keyof typeof import('./answers.ts');
/** Whether a request is one of the transfers, whose number is bounded. */
type Counted = (request: FastifyRequest) => boolean;

const PATH = '/api/v1/files';

/** Adds the routes of file operations. Source: contract section 4, "Files". */
export async function registerFileRoutes(app: HttpApp, daemon: FileContext): Promise<void> {
  const reading = handlerOf(daemon, 'read');
  const writing = handlerOf(daemon, 'write');
  const one = { querystring: FileQuery };
  const two = { querystring: TwoPathsQuery, body: TwoPathsBody };
  const list = { querystring: FileListQuery };
  const archive = { querystring: ArchiveQuery };
  const watch = { querystring: FileWatchQuery };
  const removal = { querystring: FileRemoveQuery };
  const write = { querystring: FileWriteQuery };
  app.get(PATH, { schema: one }, reading('answerRead', isTransfer));
  app.head(PATH, { schema: one }, reading('answerRead', isTransfer));
  app.get(`${PATH}/stat`, { schema: one }, reading('answerStat'));
  app.get(`${PATH}/list`, { schema: list }, reading('answerList'));
  app.get(`${PATH}/archive`, { schema: archive }, reading('answerPack', isTransfer));
  app.get(`${PATH}/watch`, { schema: watch }, reading('answerWatch'));
  app.delete(PATH, { schema: removal }, writing('answerRemove'));
  app.post(`${PATH}/move`, { schema: two }, writing('answerMove'));
  app.post(`${PATH}/copy`, { schema: two }, writing('answerCopy', isTransfer));
  await withStreamedBodies(app, (streamed) => {
    streamed.post(PATH, { schema: write }, writing('answerWrite', isUpload));
    streamed.put(PATH, { schema: write }, writing('answerWrite', isUpload));
    streamed.put(`${PATH}/archive`, { schema: one }, writing('answerUnpack', isTransfer));
  });
}

/**
 * Makes handlers that answer with the rights of the account that the request acts as: here, or in a process of that
 * account. For what changes files they throw `conflict` while the sandbox is paused.
 */
function handlerOf(daemon: FileContext, access: 'read' | 'write') {
  return (answer: AnswerName, isCounted: Counted = isNever) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const exchange = { request, reply };
      try {
        if (access === 'write') checkWritable(daemon);
        const files = await daemon.files();
        const other = await files.processOf((request.query as { user?: string }).user);
        if (other === null) return await (await import('./answers.ts'))[answer](files, exchange);
        // That process counts its own alone.
        if (isCounted(request)) files.transfers.count(exchange);
        const { forwardToAccount } = await import('./forward.ts');
        await forwardToAccount(other, exchange);
      } catch (error) {
        if (reply.raw.destroyed) {
          // The client has gone, and its work has been stopped.
          reply.hijack();
          return;
        }
        refuseBody(exchange);
        throw error;
      }
    };
}

const isNever: Counted = () => false;
const isTransfer: Counted = () => true;

/** A directory is made without any bytes. */
function isUpload({ query }: FastifyRequest): boolean {
  return !(query as { mkdir?: boolean }).mkdir;
}

function checkWritable({ state }: FileContext): void {
  if (state === 'paused') throw new ApiError('conflict', 'The sandbox is paused.');
  if (state === 'stopping') throw new ApiError('shutting_down');
}

/** Has the client see a refusal although its body is still under way: the connection ends after the answer. */
function refuseBody({ request, reply }: HttpExchange): void {
  if (request.raw.complete) return;
  if (!reply.sent) reply.header('connection', 'close');
  request.raw.resume();
}
