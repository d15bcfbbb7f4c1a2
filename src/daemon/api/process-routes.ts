import type { FastifyReply } from 'fastify';
import type { Static } from 'typebox';
import { keepHeapSmall } from '../../base/engine/heap.ts';
import type { HttpExchange } from '../../base/http/app.ts';
import { allowLongBody } from '../../base/http/listener.ts';
import { disconnectSignal } from '../../base/http/sse-response.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type {
  ProcessListData,
  ProcessListQuery,
  ProcessRequest,
  ProcessView,
  StartedData,
  StartQuery,
  StdinQuery,
} from '../../contract/processes.ts';
import type { SandboxState } from '../../contract/sandbox.ts';
import { checkProcessRequest } from '../../process/start/parse-request.ts';
import type { Supervisor } from '../../process/supervisor.ts';
import type { DaemonHandlers } from './handlers.ts';
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

/** The handlers that start, follow and end processes. Contract section 4, rows `/processes…`. */
export function processHandlers(daemon: ProcessRouteContext) {
  return {
    async startProcess({ body, query, reply }) {
      return startProcess(daemon, body, query, reply);
    },

    async listProcesses({ query }) {
      return processPage(daemon, query);
    },

    async getProcess({ params: { process_id } }) {
      return daemon.supervisor.get(process_id);
    },

    async endProcess({ params: { process_id }, query: { grace_ms } }) {
      return daemon.supervisor.remove(process_id, grace_ms);
    },

    async readProcessOutput({ params: { process_id }, query, request, reply }) {
      await answerOutput(daemon, process_id, query, { request, reply });
    },

    async attachProcess({ params: { process_id }, query, request, reply }) {
      await answerAttach(daemon, process_id, query, { request, reply });
    },

    async waitForProcess({ params: { process_id }, query, reply }) {
      const signal = disconnectSignal(reply);
      const process = await daemon.supervisor.wait(process_id, { ...query, signal });
      if (!process) throw new ApiError('timeout');
      return process;
    },

    async signalProcess({ params: { process_id }, body: { signal, scope } }) {
      daemon.supervisor.signal(process_id, signal, scope);
    },

    async resizeProcess({ params: { process_id }, body }) {
      daemon.supervisor.resize(process_id, body);
    },

    async writeProcessStdin({ params: { process_id }, query, request, reply }) {
      await writeStdin(daemon, process_id, query, { request, reply });
    },
  } satisfies Partial<DaemonHandlers>;
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
): Promise<Static<typeof StartedData>> {
  if (!body) throw invalidField('body', 'is required');
  if (lossless && wait_ms !== undefined)
    throw invalidField('lossless', 'is not accepted together with wait_ms');
  checkProcessRequest(body);
  if (Number(reply.request.headers['content-length'] ?? 0) > LARGE_BODY_BYTES) keepHeapSmall();
  if (daemon.state === 'stopping') throw new ApiError('shutting_down');
  const { created, process } = await daemon.supervisor.spawn(body, { lossless });
  const ended = wait_ms === undefined ? {} : await outcome(daemon, process, wait_ms, disconnectSignal(reply));
  if (!created) reply.code(200);
  return { ...process, ...ended };
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
