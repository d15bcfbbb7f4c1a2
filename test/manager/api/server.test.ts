import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { startManager } from '../../support/manager/running-manager.ts';
import { exchange } from '../../support/raw-socket.ts';
import { answerTo, refusedRequests } from '../../support/refused-requests.ts';
import { scratchFolder } from '../../support/scratch.ts';

describe('every answer of the manager', () => {
  it('to a request that is not served is the envelope with a request id, and the next request is normal', async () => {
    const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
    const port = Number(new URL(manager.url).port);
    for (const [name, request, status, code] of refusedRequests('/healthz')) {
      const { status: given, head, body } = await answerTo(port, request);
      expect([given, JSON.parse(body)], name).toMatchObject([status, { success: false, error: { code } }]);
      expect(head, name).toMatch(/x-request-id: \S+/i);
      if (status === 405) expect(head, name).toMatch(/^allow: GET$/im);
    }
    const first = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const upgrade = first.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    await exchange({ host: '127.0.0.1', port }, first + upgrade, { quiet_ms: 200 });
    expect((await fetch(`${manager.url}/healthz`)).status).toBe(200);
  });
});

/** The kernel's timer of the connection that a listener on this port has accepted: 02 is the one of TCP keep-alive. */
function timerOf(port: number, client_port: number | undefined): string | undefined {
  const hex = (value = 0) => value.toString(16).toUpperCase().padStart(4, '0');
  const rows = readFileSync('/proc/self/net/tcp', 'utf8').split('\n');
  const fields = rows.map((row) => row.trim().split(/\s+/));
  const own = fields.find(
    ([, local, remote]) => local?.endsWith(`:${hex(port)}`) && remote?.endsWith(`:${hex(client_port)}`),
  );
  return own?.[5]?.slice(0, 2);
}

it('a connection whose client has vanished is found dead by the kernel', async () => {
  const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const port = Number(new URL(manager.url).port);
  const client = connect(port, '127.0.0.1');
  onTestFinished(() => void client.destroy());
  await once(client, 'connect');
  await eventually(() => expect(timerOf(port, client.localPort)).toBe('02'));
});
