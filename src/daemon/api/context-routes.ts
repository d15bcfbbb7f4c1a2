import type { FastifyReply } from 'fastify';
import { type Static, Type } from 'typebox';
import { disconnectSignal } from '../../base/http/sse-response.ts';
import type { ContextData, ContextExecData, ContextRequest } from '../../contract/contexts.ts';
import { PROCESS_WAIT_MAX_MS } from '../../contract/defaults.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { closedObject } from '../../contract/field.ts';
import { type ProcessRequest, type ProcessView, PtySizeBody } from '../../contract/processes.ts';
import type { ProcessState } from '../../contract/words.ts';
import type { Supervisor } from '../../process/supervisor.ts';
import { type AttachFrames, checkedFrame, frameObject } from './attach-frame.ts';
import type { DaemonHandlers } from './handlers.ts';
import { answerAttach } from './process-attach.ts';
import { type OutputTexts, outputTexts } from './process-output.ts';
import { type ProcessRouteContext, processPage } from './process-routes.ts';

/** The slice of the daemon that the context routes use. */
export interface ContextRouteContext extends ProcessRouteContext {
  readonly supervisor: ProcessRouteContext['supervisor'] & Pick<Supervisor, 'restart' | 'hasTerminal'>;
}

/** How an end is called among contexts; a process that has not ended for good has none. */
const ENDS: Partial<Record<ProcessState, 'stopped' | 'crashed'>> = { exited: 'stopped', crashed: 'crashed' };

/** Clients number what they send; nothing is answered to it but output. */
const request_ids = { requestId: Type.Optional(Type.String()), request_id: Type.Optional(Type.String()) };
const InputFrame = closedObject({ data: Type.String(), ...request_ids });
const ResizeFrame = closedObject({ ...PtySizeBody.properties, ...request_ids });
const SignalFrame = closedObject({ signal: Type.String(), ...request_ids });
const FRAME_TYPES = ['input', 'resize', 'signal'];

/** The frames of a context's WebSocket. Source: contract section 4, GET `/contexts/{id}/ws`. */
const contextFrames = (has_terminal: boolean): AttachFrames => ({
  parse(data, is_binary) {
    const { type, ...frame } = frameObject(data, is_binary);
    switch (type) {
      case 'input':
        return { type: 'stdin', data: Buffer.from(checkedFrame(InputFrame, frame).data, 'utf8') };
      case 'resize': {
        const { rows, cols } = checkedFrame(ResizeFrame, frame, 'resize.');
        return { type, size: { rows, cols } };
      }
      case 'signal':
        return { type, signal: checkedFrame(SignalFrame, frame).signal };
      default:
        throw invalidField('type', `must be one of ${FRAME_TYPES.join(', ')}`);
    }
  },
  output: ({ stream, data }) =>
    JSON.stringify({
      ...{ type: 'output', source: has_terminal ? 'pty' : stream, data: data.toString('utf8') },
    }),
  exit: (process) => JSON.stringify({ type: 'done', ...endOf(process) }),
  error: ({ message }) => JSON.stringify({ type: 'error', error: message }),
});

/** The handlers of processes as contexts. Contract section 4, "Contexts". */
export function contextHandlers(daemon: ContextRouteContext) {
  const write = (context_id: string, { data }: { data: string }, signal: AbortSignal) =>
    daemon.supervisor.writeStdin(context_id, { data: [Buffer.from(data, 'utf8')], signal });
  return {
    async createContext({ body = {}, reply }) {
      return createContext(daemon, body, reply);
    },

    async listContexts({ query }) {
      const { processes, next_cursor } = await processPage(daemon, query);
      return { contexts: processes.map((process) => contextView(process)), next_cursor };
    },

    async getContext({ params: { context_id } }) {
      const process = await daemon.supervisor.get(context_id);
      return contextView(process, await outputTexts(daemon.supervisor, context_id));
    },

    async endContext({ params: { context_id } }) {
      await daemon.supervisor.remove(context_id);
      return { deleted: true };
    },

    async restartContext({ params: { context_id } }) {
      return contextView(await daemon.supervisor.restart(context_id));
    },

    async attachContext({ params: { context_id }, request, reply }) {
      const frames = contextFrames(await daemon.supervisor.hasTerminal(context_id));
      // The process waits for the client, which cannot ask for what it missed.
      const query = { lossless: true };
      await answerAttach(daemon, context_id, query, { request, reply }, frames);
    },

    async writeContextInput({ params: { context_id }, body, reply }) {
      await write(context_id, body, disconnectSignal(reply));
      return { written: true };
    },

    async execInContext({ params: { context_id }, body, reply }) {
      const signal = disconnectSignal(reply);
      await write(context_id, body, signal);
      await daemon.supervisor.wait(context_id, { for: 'exit', timeout_ms: PROCESS_WAIT_MAX_MS, signal });
      const process = await daemon.supervisor.get(context_id);
      return execView(process, await outputTexts(daemon.supervisor, context_id));
    },

    async resizeContext({ params: { context_id }, body }) {
      daemon.supervisor.resize(context_id, body);
      return { resized: true };
    },

    async signalContext({ params: { context_id }, body: { signal } }) {
      daemon.supervisor.signal(context_id, signal);
      return { signaled: true };
    },
  } satisfies Partial<DaemonHandlers>;
}

async function createContext(
  daemon: ContextRouteContext,
  body: ContextRequest,
  reply: FastifyReply,
): Promise<Static<typeof ContextData>> {
  const request = processRequest(body);
  if (daemon.state === 'stopping') throw new ApiError('shutting_down');
  const { supervisor } = daemon;
  const { process } = await supervisor.spawn(request);
  if (!body.wait_until_done) return contextView(process);
  const wait = {
    for: 'exit',
    timeout_ms: PROCESS_WAIT_MAX_MS,
    signal: disconnectSignal(reply),
  } as const;
  const { process_id } = process;
  const ended = (await supervisor.wait(process_id, wait)) ?? (await supervisor.get(process_id));
  return contextView(ended, await outputTexts(supervisor, process_id));
}

/** The process of a context. Throws `not_implemented` for what no process can be. */
function processRequest(body: ContextRequest): ProcessRequest {
  const { type, cmd, cwd, env_vars, pty_size, ttl_sec, idle_timeout_sec, wait_until_done } = body;
  if (type === 'repl' || (type === undefined && !cmd)) {
    throw new ApiError('not_implemented', 'Contexts of type repl are not implemented; type cmd is.');
  }
  if (!cmd) throw invalidField('cmd', 'is required');
  if (idle_timeout_sec)
    throw new ApiError('not_implemented', 'idle_timeout_sec is not implemented; ttl_sec is.');
  return {
    command: cmd.command,
    // Nobody can write to it before its end is answered.
    stdin: wait_until_done ? 'ignore' : 'pipe',
    ...(cwd ? { cwd } : {}),
    ...(env_vars ? { env: env_vars } : {}),
    ...(pty_size ? { pty: pty_size } : {}),
    ...(ttl_sec ? { timeout_ms: ttl_sec * 1000 } : {}),
  };
}

/** A process as a context. Source: contract section 4, "Contexts". */
function contextView(process: ProcessView, output: OutputTexts | null = null): Static<typeof ContextData> {
  const { process_id, cwd, state, started_at } = process;
  return {
    id: process_id,
    type: 'cmd',
    cwd,
    running: state === 'running' || state === 'restarting',
    paused: state === 'paused',
    created_at: started_at,
    ...endOf(process),
    ...(output === null ? {} : outputOf(output)),
  };
}

/** What a process has written, and how it ended if it has. */
function execView(process: ProcessView, output: OutputTexts): Static<typeof ContextExecData> {
  return { ...outputOf(output), ...endOf(process) };
}

/** How a process ended; nothing if it has not. */
function endOf({ state, exit_code }: ProcessView): {
  exit_code?: number;
  state?: 'stopped' | 'crashed';
} {
  const end = ENDS[state];
  return end === undefined ? {} : { exit_code: exit_code ?? 0, state: end };
}

/** The two streams are kept apart: how they were interleaved is not known. */
function outputOf({ stdout, stderr }: OutputTexts) {
  return { output_raw: stdout + stderr, stdout, stderr };
}
