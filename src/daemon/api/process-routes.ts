import type { FastifyReply } from 'fastify';
import type { Static } from 'typebox';
import { keepHeapSmall } from '../../base/engine/heap.ts';
import { type HttpApp, type HttpExchange, success, withStreamedBodies } from '../../base/http/app.ts';
import { allowLongBody } from '../../base/http/listener.ts';
import { disconnectSignal } from '../../base/http/sse-response.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { ProcessView } from '../../contract/processes.ts';
import type { SandboxState } from '../../contract/sandboxes.ts';
import {
  ProcessBody,
  type ProcessRequest,
  PtySizeBody,
  SignalBody,
} from '../../contract/schema/process-request.ts';
import {
  AttachQuery,
  OutputQuery,
  type ProcessListData,
  ProcessListQuery,
  ProcessParams,
  RemoveQuery,
  StartQuery,
  StdinQuery,
  WaitQuery,
} from '../../contract/schema/processes.ts';
import { NoQuery } from '../../contract/schema/query.ts';
import { checkProcessRequest } from '../../process/start/parse-request.ts';
import type { Supervisor } from '../../process/supervisor.ts';
import { type AttachContext, answerAttach } from './process-attach.ts';
import { answerOutput, type OutputContext, outputTexts } from './process-output.ts';

/** The slice of the daemon that the process routes use. */
export interface ProcessRouteContext extends AttachContext, OutputContext {
  readonly state: SandboxState | 'starting';
  readonly supervisor: Pick<
    Supervisor,
    | 'spawn'
    | 'page'
    | 'get'
    | 'remove'
    | 'wait'
    | 'signal'
    | 'resize'
    | 'output'
    | 'outputTail'
    | 'writeStdin'
  >;
}

/** A body from which on what is made of it is worth collecting early: it is garbage as soon as its program runs. */
const LARGE_BODY_BYTES = 64 * 1024;

const PATH = '/api/v1/processes';
const ONE = `${PATH}/:process_id`;
const params = ProcessParams;

/** Adds the routes that start, follow and end processes. Source: contract section 4, rows `/processes…`. */
export async function registerProcessRoutes(app: HttpApp, daemon: ProcessRouteContext): Promise<void> {
  const start = { body: ProcessBody, querystring: StartQuery };
  app.post(PATH, { schema: start }, ({ body, query }, reply) => startProcess(daemon, body, query, reply));

  app.get(PATH, { schema: { querystring: ProcessListQuery } }, async ({ query }) =>
    success(await processPage(daemon, query)),
  );

  const one = { params, querystring: NoQuery };
  app.get(ONE, { schema: one }, async (request) =>
    success(await daemon.supervisor.get(request.params.process_id)),
  );

  app.delete(ONE, { schema: { params, querystring: RemoveQuery } }, async (request) =>
    success(await daemon.supervisor.remove(request.params.process_id, request.query.grace_ms)),
  );

  const output = { params, querystring: OutputQuery };
  app.get(`${ONE}/output`, { schema: output }, async (request, reply) =>
    answerOutput(daemon, request.params.process_id, request.query, { request, reply }),
  );

  const attach = { params, querystring: AttachQuery };
  app.get(`${ONE}/attach`, { schema: attach }, async (request, reply) =>
    answerAttach(daemon, request.params.process_id, request.query, { request, reply }),
  );

  app.get(`${ONE}/wait`, { schema: { params, querystring: WaitQuery } }, async (request, reply) => {
    const signal = disconnectSignal(reply);
    const process = await daemon.supervisor.wait(request.params.process_id, { ...request.query, signal });
    if (!process) throw new ApiError('timeout');
    return success(process);
  });

  app.post(`${ONE}/signal`, { schema: { ...one, body: SignalBody } }, async (request, reply) => {
    const { signal, scope } = request.body;
    daemon.supervisor.signal(request.params.process_id, signal, scope);
    reply.code(204);
  });

  app.post(`${ONE}/resize`, { schema: { ...one, body: PtySizeBody } }, async (request, reply) => {
    daemon.supervisor.resize(request.params.process_id, request.body);
    reply.code(204);
  });

  await withStreamedBodies(app, (streamed) => {
    const schema = { params, querystring: StdinQuery };
    streamed.post(`${ONE}/stdin`, { schema }, (request, reply) =>
      writeStdin(daemon, request.params.process_id, request.query, { request, reply }),
    );
  });
}

/** A page of processes, newest first. Source: contract section 4, GET `/processes`. */
export async function processPage(
  { supervisor }: Pick<ProcessRouteContext, 'supervisor'>,
  { limit, cursor }: Static<typeof ProcessListQuery>,
): Promise<Static<typeof ProcessListData>> {
  const [, created_at_ms, process_id = ''] = /^(\d+)-(.*)$/.exec(cursor ?? '') ?? [];
  const place = created_at_ms === undefined ? null : { created_at_ms: Number(created_at_ms), process_id };
  const { processes, next } = await supervisor.page(limit, place);
  return { processes, next_cursor: next && `${next.created_at_ms}-${next.process_id}` };
}

async function startProcess(
  daemon: ProcessRouteContext,
  body: ProcessRequest | undefined,
  { wait_ms, lossless }: Static<typeof StartQuery>,
  reply: FastifyReply,
): Promise<unknown> {
  if (!body) throw invalidField('body', 'is required');
  if (lossless && wait_ms !== undefined)
    throw invalidField('lossless', 'is not accepted together with wait_ms');
  checkProcessRequest(body);
  if (Number(reply.request.headers['content-length'] ?? 0) > LARGE_BODY_BYTES) keepHeapSmall();
  if (daemon.state === 'stopping') throw new ApiError('shutting_down');
  const { created, process } = await daemon.supervisor.spawn(body, { lossless });
  const ended = wait_ms === undefined ? {} : await outcome(daemon, process, wait_ms, disconnectSignal(reply));
  reply.code(created ? 201 : 200);
  return success({ ...process, ...ended });
}

/** The process when it has ended or the time is up, with the end of its output as text. */
async function outcome(
  daemon: ProcessRouteContext,
  { process_id }: ProcessView,
  timeout_ms: number,
  signal: AbortSignal,
) {
  const { supervisor } = daemon;
  const ended = await supervisor.wait(process_id, { for: 'exit', timeout_ms, signal });
  const process = ended ?? (await supervisor.get(process_id));
  return { ...process, output: await outputTexts(supervisor, process_id) };
}

async function writeStdin(
  daemon: ProcessRouteContext,
  process_id: string,
  query: Static<typeof StdinQuery>,
  { request, reply }: HttpExchange,
): Promise<void> {
  const gone = disconnectSignal(reply);
  try {
    allowLongBody(request, reply);
    const data = request.raw.iterator({ destroyOnReturn: false });
    await daemon.supervisor.writeStdin(process_id, { data, signal: gone, ...query });
    reply.code(204).send();
  } catch (error) {
    if (gone.aborted || request.raw.destroyed) {
      reply.hijack(); // The client has disconnected.
      return;
    }
    // Drains the rest of the body, so that the client sees the answer and not a reset connection.
    request.raw.resume();
    throw error;
  }
}
