import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { systemClock } from '../../../../src/base/clock.ts';
import { KeeperRoutes } from '../../../../src/runtime/kubernetes/keeper/keeper-routes.ts';
import { scratchFolder } from '../../../support/scratch.ts';

it('a hand-over whose manager has gone before the next page is over', async () => {
  const routes = new KeeperRoutes({ control: scratchFolder(), volume: scratchFolder() }, systemClock);
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method: 'POST', url: '/hand-over' });
  request.push('{}');
  request.push(null);
  const response = new ServerResponse(request).on('error', () => {});
  response.destroy();
  await expect(routes.answer(request, response)).resolves.toBeUndefined();
}, 10_000);
