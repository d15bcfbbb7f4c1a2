import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type HttpApp, success, withStreamedBodies } from '../../base/http/app.ts';
import { allowLongBody } from '../../base/http/listener.ts';
import type { Daemon } from '../daemon.ts';
import { disconnectSignal } from './sse-response.ts';

/**
 * What only the manager asks for, over the control socket alone. Source: contract section 7.
 * - `stop` ends the sandbox for good: processes, then `sandbox.killed` with reason `api`, no flush, exit
 * - `hold` keeps it still for a fork, as long as the request's body is open
 */
export async function registerManagerRoutes(app: HttpApp, daemon: Daemon): Promise<void> {
  app.post('/api/v1/sandbox/stop', async (_request, reply) => {
    reply.code(202);
    void daemon.stop('api', null);
    return success({ state: daemon.state });
  });

  await withStreamedBodies(app, (streamed) => {
    streamed.post('/api/v1/sandbox/hold', (request, reply) => hold(daemon, request, reply));
  });
}

/**
 * Answers with a line of JSON once everything stands still, and with another when it goes on: when whoever asked has
 * ended the body, or is gone.
 */
async function hold(daemon: Daemon, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const gone = disconnectSignal(reply);
  const { raw } = reply;
  allowLongBody(request, reply);
  const released = Promise.race([
    once(request.raw, 'end', { signal: gone }),
    once(request.raw, 'close', { signal: gone }),
  ]).catch(() => {});
  request.raw.resume();
  await daemon.hold(async () => {
    reply.hijack();
    raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-request-id': request.id });
    raw.write('{"state":"held"}\n');
    await released;
  });
  raw.end('{"state":"released"}\n');
}
