import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createHttpApp } from '../../../src/base/http/app.ts';
import { createLog } from '../../../src/base/log.ts';
import { MANAGER_ROUTES } from '../../../src/contract/routes/manager.ts';
import { feedHandlers } from '../../../src/manager/api/event-routes.ts';
import { PassedShares } from '../../../src/manager/api/team-connections.ts';
import { START } from '../../../src/manager/database/cursor.ts';
import { Followers } from '../../../src/manager/events/followers.ts';
import { serveSome } from '../../support/serve-some.ts';

it('a follower that goes before its stream begins gives its share of the team back', async () => {
  const asked = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const followed = { end: async () => START, teams: async () => [] };
  const feed = {
    followers: new Followers(followed),
    rows: async () => [],
    cursorOf: () => 'cursor',
    async end() {
      asked.resolve();
      await gone.promise;
      return START;
    },
  };
  const app = createHttpApp(createLog('fatal'));
  app.decorateRequest('caller', null);
  app.decorateRequest('leaveShare', () => {});
  app.addHook('onRequest', async (request, reply) => {
    request.caller = { team_id: 'team_1', actor: 'tok_1', scopes: ['webhooks:read'], is_internal: false };
    reply.raw.once('close', () => gone.resolve());
  });
  const parts = { feed: feed as never, clock: systemClock, shares: new PassedShares(1) };
  await serveSome(app, MANAGER_ROUTES, feedHandlers(parts));
  const url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/api/v1/events`;
  onTestFinished(async () => {
    app.server.closeAllConnections();
    await app.close();
  });
  const follow = () => httpRequest(url, { headers: { accept: 'text/event-stream' } }).on('error', () => {});
  const first = follow();
  first.end();
  await asked.promise;
  first.destroy();
  await gone.promise;
  const second = follow();
  second.end();
  const [{ statusCode }] = await once(second, 'response');
  expect(statusCode).toBe(200);
  second.destroy();
});
