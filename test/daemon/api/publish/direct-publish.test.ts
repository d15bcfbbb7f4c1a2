import { describe, expect, it } from 'vitest';
import { startDaemon, startDelivering } from '../../../support/daemon/running-daemon.ts';
import { exchange, statusesOf } from '../../../support/raw-exchange.ts';

const HEAD = 'POST /api/v1/webhook/publish HTTP/1.1\r\nHost: localhost\r\n';

/** The same publish in its plain form, and in one that the application's route answers. */
function bothWays(body: string, extra = ''): string[] {
  return ['application/json', 'application/json; charset=utf-8'].map(
    (type) =>
      `${HEAD}Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${extra}Connection: close\r\n\r\n${body}`,
  );
}

/** Names of the headers, and what of them and of the body does not differ from request to request. */
function shapeOf(answer: string): unknown {
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  const [status, ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => line.split(': ').map((part) => part.toLowerCase())) as [string, string][],
  );
  for (const name of ['date', 'x-request-id']) headers[name] = typeof headers[name];
  const ids = /"event_id":"evt_[^"]+","sequence":\d+/;
  return { status, headers, body: body.replace(ids, 'ids') };
}

describe('a plain publish', () => {
  it('is answered as the same publish is by the application', async () => {
    const { daemon } = await startDelivering();
    const long = `{"payload":{"text":"${'x'.repeat(100_000)}"}}`;
    const deep = `{"payload":${'{"a":'.repeat(200)}1${'}'.repeat(201)}`;
    const bodies = ['{"payload":{}}', long, deep, '{"payload":[]}', '{"other":1}', 'not JSON', '\xff'];
    for (const [body, extra] of [
      ...bodies.map((each) => [each, '']),
      ['{"payload":{}}', 'Idempotency-Key: two words\r\n'],
      ['{"payload":{"k":1}}', 'Idempotency-Key: key\r\n'],
      ['{"payload":{"k":2}}', 'Idempotency-Key: key\r\n'],
    ]) {
      const [plain, by_application] = await Promise.all(
        bothWays(body as string, extra).map((bytes) => exchange(daemon.port, bytes)),
      );
      const at_once = { plain: shapeOf(plain as string), by_application: shapeOf(by_application as string) };
      expect(at_once.plain).toEqual(at_once.by_application);
    }
  });

  it('is refused as by the application while there is no webhook', async () => {
    const { daemon } = await startDaemon();
    const answers = await Promise.all(
      bothWays('{"payload":{}}').map((bytes) => exchange(daemon.port, bytes)),
    );
    expect(answers.flatMap(statusesOf)).toEqual([409, 409]);
    expect(shapeOf(answers[0] as string)).toEqual(shapeOf(answers[1] as string));
  });

  it('goes to the guard where its host, its origin or its length is not what it should be', async () => {
    const { daemon } = await startDelivering();
    const [plain = ''] = bothWays('{"payload":{}}');
    const odd = {
      foreign: plain.replace('Host: localhost', 'Host: example.com'),
      none: plain.replace('Host: localhost\r\n', ''),
      two: plain.replace('Host: localhost', 'Host: localhost\r\nHost: localhost'),
      origin: plain.replace('Host:', 'Origin: http://example.com\r\nHost:'),
      cross: plain.replace('Host:', 'Sec-Fetch-Site: cross-site\r\nHost:'),
      long: plain.replace('Content-Length: 14', 'Content-Length: 2000000'),
    };
    const statuses = Object.entries(odd).map(async ([name, bytes]) => {
      return [name, statusesOf(await exchange(daemon.port, bytes))];
    });
    expect(Object.fromEntries(await Promise.all(statuses))).toEqual({
      foreign: [403],
      none: [400],
      two: [400],
      origin: [403],
      cross: [403],
      long: [413],
    });
  });
});
