import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpApp, success, withStreamedBodies } from '../../base/http/app.ts';
import { allowLongBody } from '../../base/http/listener.ts';
import type { SandboxState } from '../../contract/sandboxes.ts';
import { disconnectSignal } from './sse-response.ts';

/** The slice of the daemon that the manager's routes use. */
export interface ManagerContext {
  readonly state: SandboxState | 'starting';
  /** Ends the sandbox without delivering what is pending. */
  stop(): Promise<void>;
  quiesce(work: () => Promise<void>): Promise<void>;
}

/**
 * Adds the routes that only the manager uses, over the control socket. Source: contract section 7.
 * - `stop` ends the sandbox: it stops processes, emits `sandbox.killed` with reason `api`, and exits without a flush
 * - `hold` quiesces the sandbox for a fork while the request's body is open
 */
export async function registerManagerRoutes(app: HttpApp, daemon: ManagerContext): Promise<void> {
  app.post('/api/v1/sandbox/stop', async (_request, reply) => {
    reply.code(202);
    void daemon.stop();
    return success({ state: daemon.state });
  });

  await withStreamedBodies(app, (streamed) => {
    streamed.post('/api/v1/sandbox/hold', (request, reply) => quiesce(daemon, request, reply));
  });
}

/**
 * Answers with one line of JSON when the sandbox is quiescent and another when it has resumed, which it does when the
 * client ends the body or disconnects.
 */
async function quiesce(daemon: ManagerContext, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const gone = disconnectSignal(reply);
  const { raw } = reply;
  allowLongBody(request, reply);
  const released = Promise.race([
    once(request.raw, 'end', { signal: gone }),
    once(request.raw, 'close', { signal: gone }),
  ]).catch(() => {});
  request.raw.resume();
  await daemon.quiesce(async () => {
    reply.hijack();
    raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-request-id': request.id });
    raw.write('{"state":"held"}\n');
    await released;
  });
  raw.end('{"state":"released"}\n');
}
