import { once } from 'node:events';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { allowLongBody, isUpgrade, takeUpgrade } from '../../base/http/listener.ts';
import { disconnectSignal } from '../../base/http/sse-response.ts';
import { EGRESS_PROTOCOL } from '../../contract/control-socket.ts';
import { ApiError, invalidField } from '../../contract/errors.ts';
import type { LifecycleRecord, SandboxState } from '../../contract/sandbox.ts';
import type { OutboxClient } from '../../outbox/sqlite/client.ts';
import type { LifecycleRow } from '../../outbox/sqlite/rows/lifecycle-records.ts';
import type { Tunnels } from '../tunnels.ts';
import type { DaemonHandlers } from './handlers.ts';
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

/**
 * The handlers that only the manager uses, over the control socket. Contract section 7.
 * - `stop` ends the sandbox: it stops processes, emits `sandbox.killed` with reason `api`, and exits without a flush
 * - `hold` quiesces the sandbox for a fork while the request's body is open
 * - `egress` turns the connection into a tunnel for the webhook
 * - `ports` turns it into a connection to a port of the sandbox
 * - `events` reads the sandbox's own `sandbox.*` records as they are stored, for the feed
 */
export function managerHandlers(daemon: ManagerRouteContext) {
  return {
    async stopSandbox() {
      void daemon.stop();
      return { state: daemon.state as SandboxState };
    },

    async openEgressTunnel({ request, reply }) {
      addTunnel(daemon, request, reply);
    },

    async listLifecycleRecords({ query: { after, limit } }) {
      const rows = await daemon.store.lifecycle(after, limit);
      return { records: rows.map(lifecycleRecord) };
    },

    async connectToPort({ params: { port }, request, reply }) {
      return answerPort(daemon, port, { request, reply });
    },

    async holdSandbox({ request, reply }) {
      return quiesce(daemon, request, reply);
    },
  } satisfies Partial<DaemonHandlers>;
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
