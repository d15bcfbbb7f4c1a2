import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { ConnectError } from '../../src/webhook/attempt-error.ts';
import { SharedLookup } from '../../src/webhook/lookup.ts';
import { HttpTransport } from '../../src/webhook/transport.ts';
import { type OpenStream, tunnelled } from '../../src/webhook/tunnelled.ts';
import { eventually } from '../support/eventually.ts';
import { rawServer } from '../support/hostile-server.ts';
import { ManualClock } from '../support/manual-clock.ts';

function transport(clock: ManualClock, open: OpenStream): HttpTransport {
  const made = new HttpTransport(clock, 2, new SharedLookup(), (secure) => tunnelled(clock, open, secure));
  onTestFinished(() => made.close());
  return made;
}

it('gives up a handshake that does not end 5 s after the connection was asked for, and closes the stream', async () => {
  const clock = new ManualClock();
  const silent = await rawServer(() => {});
  const { hostname, port } = new URL(silent.url);
  const open: OpenStream = async (authority) => {
    expect(authority).toBe('consumer.example:443');
    await clock.advance(2_000);
    return connect(Number(port), hostname);
  };
  const result = transport(clock, open).send(
    { url: 'https://consumer.example/', headers: {}, body: '{}' },
    15_000,
  );
  await eventually(() => expect(silent.connections).toBe(1));
  await clock.advance(2_999);
  expect(silent.open).toBe(1);
  await clock.advance(1);
  expect(await result).toMatchObject({
    status: null,
    error: 'connect',
    error_detail: 'no connection to consumer.example:443 within 5 s',
  });
  await eventually(() => expect(silent.open).toBe(0));
});

it('passes on why no stream could be opened', async () => {
  const open: OpenStream = async () => Promise.reject(new ConnectError('blocked', 'for a reason'));
  const request = { url: 'http://consumer.example/', headers: {}, body: '{}' };
  expect(await transport(new ManualClock(), open).send(request, 15_000)).toMatchObject({
    error: 'blocked',
    error_detail: 'for a reason',
  });
});
