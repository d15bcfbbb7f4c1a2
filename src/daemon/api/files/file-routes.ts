import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpApp, withStreamedBodies } from '../../../base/http/app.ts';
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
import type { Exchange } from '../process-output.ts';
import type { RoutedFiles } from './routed-files.ts';

/** The slice of the daemon that the file routes use. */
export interface FileContext {
  readonly state: SandboxState | 'starting';
  /** Loaded with the first request for files. */
  files(): Promise<RoutedFiles>;
}

type Answers = typeof import('./answers.ts');
/** Whether a request is one of the transfers, whose number is bounded. */
type Counted = (request: FastifyRequest) => boolean;
type Answer = (answers: Answers, files: RoutedFiles, exchange: Exchange) => Promise<unknown>;

const PATH = '/api/v1/files';

/** Adds the routes of file operations. Source: contract section 4, "Files". */
export async function registerFileRoutes(app: HttpApp, daemon: FileContext): Promise<void> {
  const reading = handlerOf(daemon, 'read');
  const writing = handlerOf(daemon, 'write');
  const one = { querystring: FileQuery };
  const two = { querystring: TwoPathsQuery, body: TwoPathsBody };
  const read = reading(({ answerRead }, ...given) => answerRead(...given), isTransfer);
  app.get(PATH, { schema: one }, read);
  app.head(PATH, { schema: one }, read);
  app.get(
    `${PATH}/stat`,
    { schema: one },
    reading(({ answerStat }, ...given) => answerStat(...given)),
  );
  const list = { querystring: FileListQuery };
  app.get(
    `${PATH}/list`,
    { schema: list },
    reading(({ answerList }, ...given) => answerList(...given)),
  );
  const archive = { querystring: ArchiveQuery };
  app.get(
    `${PATH}/archive`,
    { schema: archive },
    reading(({ answerPack }, ...given) => answerPack(...given), isTransfer),
  );
  const watch = { querystring: FileWatchQuery };
  app.get(
    `${PATH}/watch`,
    { schema: watch },
    reading(({ answerWatch }, ...given) => answerWatch(...given)),
  );
  const removal = { querystring: FileRemoveQuery };
  app.delete(
    PATH,
    { schema: removal },
    writing(({ answerRemove }, ...given) => answerRemove(...given)),
  );
  app.post(
    `${PATH}/move`,
    { schema: two },
    writing(({ answerMove }, ...given) => answerMove(...given)),
  );
  app.post(
    `${PATH}/copy`,
    { schema: two },
    writing(({ answerCopy }, ...given) => answerCopy(...given), isTransfer),
  );
  await withStreamedBodies(app, (streamed) => {
    const write = writing(({ answerWrite }, ...given) => answerWrite(...given), isUpload);
    streamed.post(PATH, { schema: { querystring: FileWriteQuery } }, write);
    streamed.put(PATH, { schema: { querystring: FileWriteQuery } }, write);
    const unpack = writing(({ answerUnpack }, ...given) => answerUnpack(...given), isTransfer);
    streamed.put(`${PATH}/archive`, { schema: one }, unpack);
  });
}

/**
 * Makes handlers that answer with the rights of the account that the request acts as: here, or in a process of that
 * account. For what changes files they throw `conflict` while the sandbox is paused.
 */
function handlerOf(daemon: FileContext, access: 'read' | 'write') {
  return (answer: Answer, isCounted: Counted = isNever) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const exchange = { request, reply };
      try {
        if (access === 'write') checkWritable(daemon);
        const files = await daemon.files();
        const other = await files.processOf((request.query as { user?: string }).user);
        if (other === null) return await answer(await import('./answers.ts'), files, exchange);
        // That process counts its own alone.
        if (isCounted(request)) files.transfers.count(exchange);
        const { forward } = await import('./forward.ts');
        await forward(other, exchange);
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
function refuseBody({ request, reply }: Exchange): void {
  if (request.raw.complete) return;
  if (!reply.sent) reply.header('connection', 'close');
  request.raw.resume();
}
