import { mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { COMMIT_TIMEOUT_MS } from '../../src/contract/defaults.ts';
import { Daemon, SECRET } from '../faults/support/daemon.ts';
import { DiskShim } from '../faults/support/disk-shim.ts';
import { HostileReceiver } from '../faults/support/hostile-receiver.ts';
import { expectKept } from '../faults/support/judge.ts';
import { Ledger } from '../faults/support/ledger.ts';
import { fault } from '../faults/support/scene.ts';
import { until } from '../faults/support/until.ts';

const PUBLISHES = 40;
const MOMENTS = 60;

describe('a daemon that is stopped for longer than a publish waits', () => {
  fault(
    'F17 answers what waits by what the disk then does, and loses nothing',
    { needs: ['cc'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const state_dir = scene.path('state');
      mkdirSync(state_dir, { mode: 0o700 });
      const shim = new DiskShim(scene, state_dir);
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir, env: shim.env });
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 1);
      shim.fail('any hang 1');
      const publishing = ledger.publishMany(daemon, PUBLISHES, PUBLISHES);
      await until('they wait', async () => (await daemon.readiness()).says.includes('does not answer'));
      daemon.signal('SIGSTOP');
      shim.heal();
      await sleep(COMMIT_TIMEOUT_MS + 2_500);
      daemon.signal('SIGCONT');
      expect(new Set(await publishing)).toEqual(new Set([202]));
      await expectKept({ receiver, ledger });
    },
  );
});

describe('a disk that hangs at any call while the outbox moves to its thread', () => {
  for (let moment = 1; moment <= MOMENTS; moment++) {
    fault(`F12 call ${moment}: the API goes on, and nothing is lost`, { needs: ['cc'] }, async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const state_dir = scene.path('state');
      mkdirSync(state_dir, { mode: 0o700 });
      const shim = new DiskShim(scene, state_dir);
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir, env: shim.env });
      await until('the start is on the disk', async () => (await daemon.sandbox()).outbox.delivered === 1);
      const ledger = new Ledger();
      shim.fail(`any hang ${moment}`);
      const publishing = ledger.publishMany(daemon, 1);
      for (const path of ['/healthz', '/readyz', '/metrics', '/api/v1/sandbox']) {
        expect((await daemon.ask(path)).status).toBe(200);
      }
      shim.heal();
      await publishing;
      await ledger.publishMany(daemon, 3);
      await expectKept({ receiver, ledger });
    });
  }
});
