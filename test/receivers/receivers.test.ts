import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SIGNATURE_HEADER, sign } from '../../src/webhook/signature.ts';
import { eventually } from '../support/eventually.ts';
import {
  isInstalled,
  LANGUAGES,
  type Receiver,
  SECRET,
  startReceiver,
} from '../support/receivers/receiver.ts';

let last = 0;

/** A body as delivered, whose payload does not survive being parsed and printed again. */
function event(payload = '{ "price": 1.10, "huge": 12345678901234567890, "text": "Grüße \\u00e9 🌍" }') {
  const event_id = `evt_019a2b3c-4d5e-7f60-8123-${String(++last).padStart(12, '0')}`;
  const body =
    `{"event_id":"${event_id}","event_type":"agent.event","timestamp":"2026-01-01T00:00:00.000Z",` +
    `"sandbox_id":"sbx_1","team_id":"team_1","sequence":${last},"payload":${payload}}`;
  return { event_id, body };
}

for (const language of LANGUAGES) {
  const installed = isInstalled(language);
  const title = installed ? '' : ' (skipped: it is not installed here)';

  describe.skipIf(!installed)(`the receiver in ${language.name}${title}`, () => {
    let receiver: Receiver;

    beforeAll(async () => {
      receiver = await startReceiver(language);
    }, 120_000);

    afterAll(() => receiver?.stop());

    async function send(body: string | Uint8Array<ArrayBuffer>, signature?: string): Promise<number> {
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      if (signature !== undefined) headers[SIGNATURE_HEADER] = signature;
      return (await fetch(receiver.url, { method: 'POST', headers, body })).status;
    }

    it('answers 204 to a good body once it has recorded its very bytes', async () => {
      const { body } = event();
      expect(await send(body, sign(SECRET, body))).toBe(204);
      await eventually(() => expect(receiver.printed()).toContain(`${body}\n`));
    });

    it('records an event that arrives twice only once', async () => {
      const [twice, after] = [event(), event()];
      expect(await send(twice.body, sign(SECRET, twice.body))).toBe(204);
      expect(await send(twice.body, sign(SECRET, twice.body))).toBe(204);
      expect(await send(after.body, sign(SECRET, after.body))).toBe(204);
      await eventually(() => expect(receiver.printed()).toContain(after.event_id));
      expect(receiver.printed().split(twice.event_id)).toHaveLength(2);
    });

    it('answers 401 to a tampered body, a missing or wrong signature and a re-serialized body, and records none', async () => {
      const { body, event_id } = event();
      const good = sign(SECRET, body);
      expect(await send(body.replace('1.10', '9.10'), good)).toBe(401);
      expect(await send(body)).toBe(401);
      expect(await send(body, '')).toBe(401);
      expect(await send(body, 'ÿ'.repeat(64))).toBe(401);
      expect(await send(body, sign('another key', body))).toBe(401);
      expect(await send(JSON.stringify(JSON.parse(body)), good)).toBe(401);
      const after = event();
      expect(await send(after.body, sign(SECRET, after.body))).toBe(204);
      await eventually(() => expect(receiver.printed()).toContain(after.event_id));
      expect(receiver.printed()).not.toContain(event_id);
    });

    it('takes what only a verbatim payload holds: deep nesting, numbers of any length, a lone surrogate', async () => {
      const payloads = [
        `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`,
        `{"digits":${'7'.repeat(5000)}}`,
        '{"beyond":1e400,"surrogate":"\\ud800"}',
        `{"large":"${'x'.repeat(1024 * 1024 - 100)}"}`,
      ];
      for (const { body, event_id } of payloads.map(event)) {
        expect(await send(body, sign(SECRET, body))).toBe(204);
        await eventually(() => expect(receiver.printed()).toContain(event_id));
      }
    });

    it('answers 400 to a signed body that is no event', async () => {
      for (const body of ['{"event_id":', '[]', '{}', '']) {
        expect(await send(body, sign(SECRET, body)), body).toBe(400);
      }
    });

    it('refuses a body that is larger than any event, and goes on', async () => {
      const large = Buffer.alloc(3 * 1024 * 1024, ' ');
      // A receiver may also cut the connection, and the sender then miss the answer.
      expect([400, 'cut off']).toContain(await send(large, sign(SECRET, large)).catch(() => 'cut off'));
      const { body } = event();
      expect(await send(body, sign(SECRET, body))).toBe(204);
    });

    it('answers 400 to a body that is cut off, and goes on', async () => {
      const { body } = event();
      const request =
        `POST / HTTP/1.1\r\nHost: localhost\r\n${SIGNATURE_HEADER}: ${sign(SECRET, body)}\r\n` +
        `Content-Length: ${Buffer.byteLength(body) + 1}\r\n\r\n${body}`;
      expect(await sendRaw(receiver.port, request)).toContain(language.is_silent ? '' : ' 400 ');
      expect(await send(body, sign(SECRET, body))).toBe(204);
    });
  });
}

/** Sends the bytes of a request, ends the sending side and returns all that is answered. */
function sendRaw(port: number, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.end(request);
    socket
      .setEncoding('utf8')
      .on('data', (text: string) => {
        answer += text;
      })
      .on('end', () => resolve(answer))
      .on('error', reject);
  });
}
