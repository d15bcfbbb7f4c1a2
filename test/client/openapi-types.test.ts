import { join } from 'node:path';
import { expect, it } from 'vitest';
import { schemaTypesOf, typesOf } from '../../.build/openapi-types/types.ts';
import { EVENT_SCHEMAS } from '../../src/receiver/event-schemas.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const OPENAPI = '../../src/client/openapi';
const PUBLISHED = '../published';

const printed = (document: unknown) => `${JSON.stringify(document, null, 1)}\n`;

it('the documents that the programs serve, and the types made from them, are as published (else: npm run published)', async () => {
  const { manager } = await startManager(`sqlite:${join(scratchFolder(), 'manager.db')}`);
  const { call } = await startDaemon('--webhook-url', 'http://127.0.0.1:9/');
  const of_manager = await (await fetch(`${manager.url}/openapi.json`)).json();
  const { json: of_daemon } = await call('GET', '/openapi.json', { token: null });
  await expect(printed(of_manager)).toMatchFileSnapshot(`${PUBLISHED}/manager-openapi.json`);
  await expect(printed(of_daemon)).toMatchFileSnapshot(`${PUBLISHED}/daemon-openapi.json`);
  await expect(await typesOf(of_manager as object)).toMatchFileSnapshot(`${OPENAPI}/manager-api.ts`);
  await expect(await typesOf(of_daemon)).toMatchFileSnapshot(`${OPENAPI}/daemon-api.ts`);
});

it("the types of received events are made from the documents' schemas (else: npm run published)", async () => {
  const types = await schemaTypesOf(EVENT_SCHEMAS);
  await expect(types).toMatchFileSnapshot('../../src/receiver/event-types.ts');
});
