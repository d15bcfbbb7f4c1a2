import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { connectControl } from '../../../src/runtime/control-client.ts';
import { ClusterClient } from '../../../src/runtime/kubernetes/api/cluster-client.ts';
import { clusterAccess } from '../../../src/runtime/kubernetes/api/config-file.ts';
import { Keepers } from '../../../src/runtime/kubernetes/keepers.ts';
import { Pods } from '../../../src/runtime/kubernetes/pods.ts';
import { Records } from '../../../src/runtime/kubernetes/records.ts';
import { RunningSandboxes } from '../../../src/runtime/kubernetes/running-sandboxes.ts';
import { FakeApi, refuse } from '../../support/kubernetes/fake-api.ts';
import { scratchFolder } from '../../support/scratch.ts';

/** The keepers of a node on which this daemon is the only one. */
class OneKeeper extends Keepers {
  socket = '';

  override connect() {
    return connectControl(this.socket);
  }
}

async function opened(state: string | null) {
  const api = await FakeApi.start();
  api.odd = (_, response) => refuse(response, 503, 'ServiceUnavailable', 'etcd is away');
  const client = new ClusterClient(clusterAccess(api.kubeconfig, null));
  const [pods, records] = [new Pods(client, systemClock), new Records(client)];
  const keepers = new OneKeeper(client, pods, records, systemClock);
  keepers.socket = join(scratchFolder(), 'control.sock');
  const daemon = createServer((_, response) => response.end(JSON.stringify({ data: { state } })));
  if (state !== null) await new Promise<void>((resolve) => daemon.listen(keepers.socket, resolve));
  onTestFinished(() => {
    client.close();
    daemon.close();
  });
  return new RunningSandboxes({ client, pods, records, keepers });
}

it.each(['running', 'paused'])('while the API is away the daemon says that it is %s', async (state) => {
  expect(await (await opened(state)).inspect('sbx-1')).toBe(state);
});

it.each(['odd', null])(
  'while the API is away, what a daemon (%s) does not say is not known',
  async (state) => {
    await expect((await opened(state)).inspect('sbx-1')).rejects.toMatchObject({ code: 'unavailable' });
  },
);
