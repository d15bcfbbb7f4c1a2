import { type Context, defaultTextMapGetter, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { describe, expect, it } from 'vitest';
import { startConsumer } from '../../../support/consumer.ts';
import { startDelivering } from '../../../support/daemon/running-daemon.ts';
import { exchange, statusesOf } from '../../../support/raw-exchange.ts';
import { startSandboxd } from '../../../support/sandboxd-program.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const TRACEPARENT = `00-${TRACE}-b7ad6b7169203331-01`;
/** What the plain route answers, and what the application's does. */
const TYPES = ['application/json', 'application/json; charset=utf-8'];

/** The span that a receiver's OpenTelemetry continues. */
function extracted(headers: object): ReturnType<typeof trace.getSpanContext> {
  const context: Context = new W3CTraceContextPropagator().extract(
    ROOT_CONTEXT,
    headers,
    defaultTextMapGetter,
  );
  return trace.getSpanContext(context);
}

describe('the trace of a publish', () => {
  it.each(TYPES)('of type %s is continued by the receiver, at each attempt', async (type) => {
    const { consumer, publish, call } = await startDelivering();
    consumer.answer = ({ headers }, response) =>
      response.writeHead(headers['x-service-attempt'] === '1' ? 503 : 204).end();
    const { json } = await publish('{}', { 'content-type': type, traceparent: TRACEPARENT });
    await consumer.arrival('agent.event', 2);
    const arrived = consumer.deliveries.filter(({ event }) => event.event_type === 'agent.event');
    expect(arrived.map(({ headers }) => headers.traceparent)).toEqual([TRACEPARENT, TRACEPARENT]);
    expect(extracted(arrived[1]?.headers ?? {})).toMatchObject({
      traceId: TRACE,
      spanId: 'b7ad6b7169203331',
      traceFlags: 1,
      isRemote: true,
    });
    const path = `/api/v1/webhook/deliveries/${json.data.event_id}`;
    expect((await call('GET', path)).json.data.headers.traceparent).toBe(TRACEPARENT);
  });

  it.each(TYPES)('of type %s is ignored where it is not valid or given twice', async (type) => {
    const { consumer, daemon } = await startDelivering();
    const lines = [
      '',
      `traceparent: ${TRACEPARENT}-more\r\n`,
      `traceparent: 00-${'0'.repeat(32)}-b7ad6b7169203331-01\r\n`,
      `traceparent: ${TRACEPARENT}\r\ntraceparent: ${TRACEPARENT}\r\n`,
      `tracestate: vendor=1\r\n`,
    ];
    for (const line of lines) {
      const head = `POST /api/v1/webhook/publish HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n`;
      const bytes = `${head}Content-Length: 14\r\n${line}Connection: close\r\n\r\n{"payload":{}}`;
      expect(statusesOf(await exchange(daemon.port, bytes))).toEqual([202]);
    }
    await consumer.arrival('agent.event', lines.length);
    for (const { headers } of consumer.deliveries) {
      expect(Object.keys(headers)).not.toEqual(expect.arrayContaining([expect.stringMatching(/^trace/)]));
    }
  });

  it('is that of the first publish with its key', async () => {
    const { consumer, publish } = await startDelivering();
    await publish('{}', { 'idempotency-key': 'k', traceparent: TRACEPARENT });
    const other = TRACEPARENT.replace(TRACE, 'f'.repeat(32));
    expect((await publish('{}', { 'idempotency-key': 'k', traceparent: other })).status).toBe(202);
    expect((await consumer.arrival('agent.event')).headers.traceparent).toBe(TRACEPARENT);
  });

  it('outlives a kill, and its id is in the log line of a delivery that fails', async () => {
    const consumer = await startConsumer();
    consumer.answer = (_, response) => response.writeHead(503).end();
    const first = await startSandboxd(['--webhook-url', consumer.url]);
    await fetch(`${first.url}/api/v1/webhook/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: TRACEPARENT },
      body: '{"payload":{}}',
    });
    await first.end('SIGKILL');
    consumer.answer = ({ event }, response) =>
      response.writeHead(event.event_type === 'agent.event' ? 400 : 204).end();
    const again = await startSandboxd(['--webhook-url', consumer.url], { state_dir: first.state_dir });
    const line = await again.logged('a delivery failed for good: the record is kept and can be replayed');
    expect(line).toMatchObject({ event_type: 'agent.event', trace_id: TRACE });
    expect(consumer.deliveries.at(-1)?.headers.traceparent).toBe(TRACEPARENT);
  });
});
