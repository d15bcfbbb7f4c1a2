import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type HttpApp, success, withStreamedBodies } from '../../base/http/app.ts';
import { allowLongBody, isUpgrade, takeUpgrade } from '../../base/http/listener.ts';
import { disconnectSignal } from '../../base/http/sse-response.ts';
import { EGRESS_PATH, EGRESS_PROTOCOL } from '../../contract/egress.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import { LIFECYCLE_PAGE_RECORDS, LIFECYCLE_PATH, type LifecycleRecord } from '../../contract/lifecycle.ts';
import { PORTS_PATH } from '../../contract/ports.ts';
import type { SandboxState } from '../../contract/sandboxes.ts';
import { closedObject } from '../../contract/schema/field.ts';
import { pageLimit } from '../../contract/schema/query.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { LifecycleRow } from '../../outbox/sqlite/rows/lifecycle-records.ts';
import type { Tunnels } from '../tunnels.ts';
import { answerPort, type PortContext } from './port-tunnel.ts';

/** The slice of the daemon that the manager's routes use. */
export interface ManagerRouteContext extends PortContext {
  readonly state: SandboxState | 'starting';
  /** Ends the sandbox without delivering what is pending. */
  stop(): Promise<void>;
  quiesce(work: (over: AbortSignal) => Promise<void>): Promise<void>;
  /** Null unless the webhook leaves through the manager. */
  readonly tunnels: Pick<Tunnels, 'checkRoom' | 'add'> | null;
  readonly store: Pick<OutboxClient, 'lifecycle'>;
}

const LifecycleQuery = closedObject({
  after: Type.Integer({ minimum: 0, default: 0 }),
  limit: pageLimit(LIFECYCLE_PAGE_RECORDS, LIFECYCLE_PAGE_RECORDS),
});

/**
 * Adds the routes that only the manager uses, over the control socket. Source: contract section 7.
 * - `stop` ends the sandbox: it stops processes, emits `sandbox.killed` with reason `api`, and exits without a flush
 * - `hold` quiesces the sandbox for a fork while the request's body is open
 * - `egress` turns the connection into a tunnel for the webhook
 * - `ports` turns it into a connection to a port of the sandbox
 * - `events` reads the sandbox's own `sandbox.*` records as they are stored, for the feed
 */
export async function registerManagerRoutes(app: HttpApp, daemon: ManagerRouteContext): Promise<void> {
  app.post('/api/v1/sandbox/stop', async (_request, reply) => {
    reply.code(202);
    void daemon.stop();
    return success({ state: daemon.state });
  });

  app.get(`/api/v1${EGRESS_PATH}`, async (request, reply) => addTunnel(daemon, request, reply));

  app.get(`/api/v1${LIFECYCLE_PATH}`, { schema: { querystring: LifecycleQuery } }, async (request) => {
    const { after, limit } = request.query;
    const rows = await daemon.store.lifecycle(after, limit);
    return success({ records: rows.map(lifecycleRecord) });
  });

  app.get<{ Params: { port: string } }>(`/api/v1${PORTS_PATH}/:port`, async (request, reply) =>
    answerPort(daemon, request.params.port, { request, reply }),
  );

  await withStreamedBodies(app, (streamed) => {
    streamed.post('/api/v1/sandbox/hold', (request, reply) => quiesce(daemon, request, reply));
  });
}

function lifecycleRecord({ mac, ...row }: LifecycleRow): LifecycleRecord {
  return { ...row, mac: Buffer.from(mac).toString('hex') };
}

function addTunnel({ tunnels }: ManagerRouteContext, request: FastifyRequest, reply: FastifyReply): void {
  if (!isUpgrade(request, EGRESS_PROTOCOL)) throw invalidField('Upgrade', `must be ${EGRESS_PROTOCOL}`);
  if (tunnels === null) throw new ApiError('conflict', 'The webhook does not leave through the manager.');
  tunnels.checkRoom();
  const upgrade = takeUpgrade(request, reply);
  if (upgrade) tunnels.add(upgrade.socket);
}

/**
 * Answers with one line of JSON when the sandbox is quiescent and another when it has resumed, which it does when the
 * client ends the body or disconnects, or somebody pauses or resumes the sandbox.
 */
async function quiesce(
  daemon: ManagerRouteContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const gone = disconnectSignal(reply);
  const { raw } = reply;
  allowLongBody(request, reply);
  const released = Promise.race([
    once(request.raw, 'end', { signal: gone }),
    once(request.raw, 'close', { signal: gone }),
  ]).catch(() => {});
  request.raw.resume();
  await daemon.quiesce(async (over) => {
    reply.hijack();
    raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'x-request-id': request.id });
    raw.write('{"state":"held"}\n');
    if (!over.aborted) await Promise.race([released, once(over, 'abort')]);
  });
  raw.end('{"state":"released"}\n');
}
