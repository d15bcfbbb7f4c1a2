import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
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
