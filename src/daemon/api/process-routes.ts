import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { type HttpApp, success, withStreamedBodies } from '../../base/http/app.ts';
import { allowLongBody } from '../../base/http/listener.ts';
import { enumParam, flagParam, integerParam, queryOf } from '../../base/http/query.ts';
import { OUTPUT_ANSWER_BYTES, PROCESS_WAIT_MAX_MS } from '../../contract/defaults.ts';
import { ApiError } from '../../contract/errors.ts';
import type { ProcessView } from '../../contract/processes.ts';
import type { SandboxState } from '../../contract/sandboxes.ts';
import { continuationBytes } from '../../process/output/preview.ts';
import { parseProcessRequest } from '../../process/start/request.ts';
import type { Supervisor } from '../../process/supervisor.ts';
import { type AttachContext, answerAttach } from './process-attach.ts';
import { answerOutput, type OutputContext } from './process-output.ts';
import { disconnectSignal } from './sse-response.ts';

/** The slice of the daemon that the process routes use. */
export interface ProcessRouteContext extends AttachContext, OutputContext {
  readonly state: SandboxState | 'starting';
  readonly supervisor: Pick<
    Supervisor,
    | 'spawn'
    | 'list'
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

const closed = { additionalProperties: false };

const SignalBody = Type.Object(
  {
    signal: Type.String(),
    scope: Type.Optional(Type.Enum(['group', 'leader'])),
  },
  closed,
);

/** The kernel stores a terminal's sides in 16 bits. */
const side = () => Type.Integer({ minimum: 1, maximum: 65_535 });

const ResizeBody = Type.Object({ cols: side(), rows: side() }, closed);

interface ProcessRoute {
  Params: { process_id: string };
}

/** Adds the routes that start, follow and end processes. Source: contract section 4, rows `/processes…`. */
export async function registerProcessRoutes(app: HttpApp, daemon: ProcessRouteContext): Promise<void> {
  app.post('/api/v1/processes', (request, reply) => start(daemon, request, reply));

  app.get('/api/v1/processes', async (request) => {
    queryOf(request.query, []);
    return success({ processes: await daemon.supervisor.list() });
  });

  app.get<ProcessRoute>('/api/v1/processes/:process_id', async (request) => {
    queryOf(request.query, []);
    return success(await daemon.supervisor.get(request.params.process_id));
  });

  app.delete<ProcessRoute>('/api/v1/processes/:process_id', async (request) => {
    const query = queryOf(request.query, ['grace_ms']);
    const grace_ms = integerParam(query.grace_ms, 'grace_ms', 0);
    return success(await daemon.supervisor.remove(request.params.process_id, grace_ms));
  });

  app.get<ProcessRoute>('/api/v1/processes/:process_id/output', async (request, reply) =>
    answerOutput(daemon, request.params.process_id, request, reply),
  );

  app.get<ProcessRoute>('/api/v1/processes/:process_id/attach', async (request, reply) =>
    answerAttach(daemon, request.params.process_id, request, reply),
  );

  app.get<ProcessRoute>('/api/v1/processes/:process_id/wait', async (request, reply) => {
    const query = queryOf(request.query, ['timeout_ms', 'for']);
    const timeout_ms = integerParam(query.timeout_ms, 'timeout_ms', 0);
    const process = await daemon.supervisor.wait(request.params.process_id, {
      for: enumParam(query.for, 'for', ['exit', 'ready']) ?? 'exit',
      ...(timeout_ms === undefined ? {} : { timeout_ms }),
      signal: disconnectSignal(reply),
    });
    if (!process) throw new ApiError('timeout');
    return success(process);
  });

  app.post<ProcessRoute>(
    '/api/v1/processes/:process_id/signal',
    { schema: { body: SignalBody } },
    async (request, reply) => {
      queryOf(request.query, []);
      const { signal, scope } = request.body as Static<typeof SignalBody>;
      daemon.supervisor.signal(request.params.process_id, signal, scope);
      reply.code(204);
    },
  );

  app.post<ProcessRoute>(
    '/api/v1/processes/:process_id/resize',
    { schema: { body: ResizeBody } },
    async (request, reply) => {
      queryOf(request.query, []);
      daemon.supervisor.resize(request.params.process_id, request.body as Static<typeof ResizeBody>);
      reply.code(204);
    },
  );

  await withStreamedBodies(app, (streamed) => {
    streamed.post<ProcessRoute>('/api/v1/processes/:process_id/stdin', (request, reply) =>
      writeStdin(daemon, request.params.process_id, request, reply),
    );
  });
}

async function start(
  daemon: ProcessRouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const query = queryOf(request.query, ['wait_ms']);
  const wait_ms = integerParam(query.wait_ms, 'wait_ms', 0, PROCESS_WAIT_MAX_MS);
  const wanted = parseProcessRequest(request.body);
  if (daemon.state === 'stopping') throw new ApiError('shutting_down');
  const { created, process } = await daemon.supervisor.spawn(wanted);
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
  const tail = await supervisor.outputTail(process_id, OUTPUT_ANSWER_BYTES);
  const { stdout_truncated, stderr_truncated } = tail;
  const output = {
    stdout: textOf(tail.stdout, stdout_truncated),
    stderr: textOf(tail.stderr, stderr_truncated),
    stdout_truncated,
    stderr_truncated,
  };
  return { ...process, output };
}

/** Replaces invalid UTF-8 with U+FFFD; drops a character whose first bytes were cut off. */
function textOf(tail: Buffer, is_cut: boolean): string {
  return tail.subarray(is_cut ? continuationBytes(tail, 0) : 0).toString('utf8');
}

async function writeStdin(
  daemon: ProcessRouteContext,
  process_id: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const gone = disconnectSignal(reply);
  try {
    const query = queryOf(request.query, ['end', 'offset']);
    const end = flagParam(query.end, 'end');
    const offset = integerParam(query.offset, 'offset', 0);
    allowLongBody(request, reply);
    const data = request.raw.iterator({ destroyOnReturn: false });
    const given = offset === undefined ? {} : { offset };
    await daemon.supervisor.writeStdin(process_id, { data, end, signal: gone, ...given });
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
