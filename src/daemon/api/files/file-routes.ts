import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { type HttpApp, success, withStreamedBodies } from '../../../base/http/app.ts';
import { ApiError, invalidField } from '../../../contract/errors.ts';
import type { SandboxState } from '../../../contract/sandboxes.ts';
import {
  FileListQuery,
  FileQuery,
  FileRemoveQuery,
  FileWriteQuery,
  TwoPathsBody,
  TwoPathsQuery,
} from '../../../contract/schema/files.ts';
import type { TwoPaths } from '../../../files/change/copy.ts';
import type { Exchange } from '../process-output.ts';
import { disconnectSignal } from '../sse-response.ts';
import type { RoutedFiles } from './routed-files.ts';
import { answerMakeDirectory, answerUpload, refuseBody } from './upload.ts';

/** The slice of the daemon that the file routes use. */
export interface FileContext {
  readonly state: SandboxState | 'starting';
  /** Loaded with the first request for files. */
  files(): Promise<RoutedFiles>;
}

const PATH = '/api/v1/files';

/** Adds the routes of file operations. Source: contract section 4, "Files". */
export async function registerFileRoutes(app: HttpApp, daemon: FileContext): Promise<void> {
  const one = { querystring: FileQuery };
  const download = (request: FastifyRequest<{ Querystring: { user?: string } }>, reply: FastifyReply) =>
    asAccount(daemon, { request, reply }, async (files) => {
      const { answerDownload } = await import('./download.ts');
      files.transfers.begin({ request, reply });
      await answerDownload(await files.own.open(await pathOf(request)), files.clock, { request, reply });
    });
  app.get(PATH, { schema: one }, download);
  app.head(PATH, { schema: one }, download);

  app.get(`${PATH}/stat`, { schema: one }, (request, reply) =>
    asAccount(daemon, { request, reply }, async ({ own }) => success(await own.stat(await pathOf(request)))),
  );

  app.get(`${PATH}/list`, { schema: { querystring: FileListQuery } }, (request, reply) =>
    asAccount(daemon, { request, reply }, async ({ own }) =>
      success(await own.list({ ...request.query, path: await pathOf(request) })),
    ),
  );

  app.delete(PATH, { schema: { querystring: FileRemoveQuery } }, (request, reply) =>
    asWriter(daemon, { request, reply }, async ({ own }) => {
      const { recursive } = request.query;
      await own.remove({ path: await pathOf(request), recursive, signal: disconnectSignal(reply) });
      return success({ deleted: true });
    }),
  );

  const two = { querystring: TwoPathsQuery, body: TwoPathsBody };
  app.post(`${PATH}/move`, { schema: two }, (request, reply) =>
    asWriter(daemon, { request, reply }, async ({ own }) => {
      await own.move(await twoPaths(request.body, reply));
      return success({ moved: true });
    }),
  );
  app.post(`${PATH}/copy`, { schema: two }, (request, reply) =>
    asWriter(daemon, { request, reply }, async ({ own, transfers }) => {
      transfers.count({ request, reply });
      await own.copy(await twoPaths(request.body, reply));
      return success({ copied: true });
    }),
  );

  await withStreamedBodies(app, (streamed) => {
    const write = { querystring: FileWriteQuery };
    const answer = (
      request: FastifyRequest<{ Querystring: Static<typeof FileWriteQuery> }>,
      reply: FastifyReply,
    ) =>
      asWriter(daemon, { request, reply }, async (files) => {
        const path = await pathOf(request);
        if (!request.query.mkdir) return answerUpload(files, path, request.query, { request, reply });
        if (request.method === 'PUT') throw invalidField('mkdir', 'is accepted with POST only');
        return answerMakeDirectory(files, path, request.query, { request, reply });
      });
    streamed.post(PATH, { schema: write }, answer);
    streamed.put(PATH, { schema: write }, answer);
  });
}

/** Like `asAccount`, for what changes files. Throws `conflict` while the sandbox is paused. */
async function asWriter<Answer>(
  daemon: FileContext,
  exchange: Exchange,
  answer: (files: RoutedFiles) => Promise<Answer>,
): Promise<Answer | undefined> {
  try {
    if (daemon.state === 'paused') throw new ApiError('conflict', 'The sandbox is paused.');
    if (daemon.state === 'stopping') throw new ApiError('shutting_down');
    return await asAccount(daemon, exchange, answer);
  } catch (error) {
    refuseBody(exchange);
    throw error;
  }
}

async function twoPaths(
  body: Static<typeof TwoPathsBody> | undefined,
  reply: FastifyReply,
): Promise<TwoPaths> {
  if (!body) throw invalidField('body', 'is required');
  const { source: path, source_base64: path_base64, destination, destination_base64 } = body;
  const { parsePath } = await import('../../../files/byte-path.ts');
  return {
    source: parsePath({ path, path_base64 }, 'source'),
    destination: parsePath({ path: destination, path_base64: destination_base64 }, 'destination'),
    overwrite: body.overwrite ?? false,
    signal: disconnectSignal(reply),
  };
}

/** Answers with the rights of the account that the request acts as: here, or in a process of that account. */
async function asAccount<Answer>(
  daemon: FileContext,
  exchange: Exchange,
  answer: (files: RoutedFiles) => Promise<Answer>,
): Promise<Answer | undefined> {
  const files = await daemon.files();
  const { user } = exchange.request.query as { user?: string };
  const other = await files.processOf(user);
  if (other === null) return answer(files);
  const { forward } = await import('./forward.ts');
  await forward(other, exchange);
  return undefined;
}

/** The path that a query names. The framework takes a text that is not UTF-8 as it is written. */
async function pathOf({ raw, query }: FastifyRequest): Promise<string> {
  const [, text = ''] = /\?([^#]*)/.exec(raw.url ?? '') ?? [];
  for (const parameter of text.split('&')) {
    const [name = '', value = ''] = parameter.split('=', 2);
    if (!isDecodable(value)) throw invalidField(name, 'must be UTF-8');
  }
  const { parsePath } = await import('../../../files/byte-path.ts');
  return parsePath(query as { path?: string; path_base64?: string });
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
