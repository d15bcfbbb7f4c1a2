import { createServer } from 'node:http';
import { expect, it } from 'vitest';
import { limitRequests } from '../../../src/base/http/slow-clients.ts';
import { ManualClock } from '../../support/manual-clock.ts';

it('lifts the limits of requests for a while after a stop of the program, and then they hold again', async () => {
  const clock = new ManualClock();
  const server = createServer();
  limitRequests(server, clock, { headers_ms: 4_000, request_ms: 14_000, check_ms: 1_000 });
  // As Node reads them, once a second.
  const check = async () => {
    await clock.advance(1_000);
    return [server.headersTimeout, server.requestTimeout];
  };
  for (let checks = 0; checks < 5; checks++) expect(await check()).toEqual([4_000, 14_000]);
  clock.freeze(60_000);
  for (let checks = 0; checks < 14; checks++) expect(await check()).toEqual([0, 0]);
  expect(await check()).toEqual([4_000, 14_000]);
});
