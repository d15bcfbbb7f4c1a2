import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { socketProtocols } from '../../../src/contract/socket-token.ts';
import { DaemonRuntime } from '../../support/manager/daemon-runtime.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { scratchFolder } from '../../support/scratch.ts';

interface Opened {
  /** The status of a refusal; null where it was opened. */
  status: number | null;
  protocol: string;
}

function open(url: string, protocols: string[], headers: Record<string, string> = {}): Promise<Opened> {
  const socket = new WebSocket(url.replace('http:', 'ws:'), protocols, { headers });
  onTestFinished(() => socket.terminate());
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve({ status: null, protocol: socket.protocol }));
    socket.once('unexpected-response', (_request, { statusCode = 0 }) =>
      resolve({ status: statusCode, protocol: '' }),
    );
    socket.once('error', reject);
  });
}

it('a browser proves itself to WebSockets of a sandbox by a subprotocol, and nowhere else', async () => {
  const runtime = new DaemonRuntime();
  const running = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`, { runtime });
  const writer = await running.client('team_1', 'sandboxes:write');
  const reader = await running.client('team_1', 'sandboxes:read');
  const stranger = await running.client('team_2', 'sandboxes:write');
  const path = `/api/v1/sandboxes/${await writer.claim()}`;
  const { data } = await writer.post(`${path}/processes`, { command: ['cat'], stdin: 'pipe' });
  const attach = `${running.manager.url}${path}/processes/${data.process_id}/attach`;

  expect(await open(attach, socketProtocols(writer.token))).toEqual({
    status: null,
    protocol: 'sandboxd.v1',
  });
  expect(await open(`${running.manager.url}${path}/files/watch`, socketProtocols(reader.token))).toEqual({
    status: null,
    protocol: 'sandboxd.v1',
  });
  expect((await open(attach, socketProtocols(reader.token))).status).toBe(403);
  expect((await open(attach, socketProtocols(stranger.token))).status).toBe(404);
  expect((await open(attach, socketProtocols('wrong'))).status).toBe(401);
  expect((await open(attach, ['sandboxd.v1', 'sandboxd.bearer.'])).status).toBe(401);
  // A header that is there is what counts.
  const bad = { authorization: 'Bearer wrong' };
  expect((await open(attach, socketProtocols(writer.token), bad)).status).toBe(401);
  // A server in the sandbox would see it, and other requests can set headers.
  const port = `${running.manager.url}${path}/ports/8000/`;
  expect((await open(port, socketProtocols(writer.token))).status).toBe(401);
  const plain = await fetch(`${running.manager.url}${path}/processes`, {
    headers: { 'sec-websocket-protocol': socketProtocols(writer.token).join(', ') },
  });
  expect(plain.status).toBe(401);
});
