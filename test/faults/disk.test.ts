import { readdirSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { describe, expect } from 'vitest';
import { ask } from './support/ask.ts';
import { Daemon, SECRET } from './support/daemon.ts';
import { DiskShim } from './support/disk-shim.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { setLimit } from './support/limits.ts';
import { LoopDisk } from './support/loop-disk.ts';
import { fault } from './support/scene.ts';
import { status } from './support/steps.ts';
import { Tracer } from './support/tracer.ts';
import { timed, until } from './support/until.ts';

const KILLS = 12;

describe('disk', () => {
  fault(
    'F02 every acknowledgement comes after a sync of the outbox',
    { needs: ['strace'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
      receiver.behave(status(200, { delay_ms: 1_500 }));
      const tracer = await Tracer.attach(scene, daemon.pid, ['-e', 'trace=fsync,fdatasync']);
      const ledger = new Ledger();
      for (let n = 1; n <= 5; n++) {
        expect((await ledger.publish(daemon))?.status).toBe(202);
        await until('the sync is traced', () => syncsOf(tracer).length >= n);
      }
      await tracer.detach();
      receiver.behave(status(200));
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F03 a sync that fails acknowledges nothing, and publishing goes on when it works again',
    { needs: ['cc'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const shim = new DiskShim(scene, scene.path('state'));
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 5);
      shim.fail('sync error');
      expect(await ledger.publishMany(daemon, 20, 4)).toEqual(Array(20).fill(503));
      expect((await daemon.readiness()).status).toBe(503);
      expect((await ask(`${daemon.url}/healthz`)).status).toBe(200);
      shim.heal();
      await until('the daemon is ready again', async () => (await daemon.readiness()).status === 200);
      expect(await ledger.publishMany(daemon, 5)).toEqual(Array(5).fill(202));
      await expectKept({ receiver, ledger });
      expect(daemon.exit).toBeNull();
    },
  );

  fault(
    'F03 no later commit relies on what a failed sync left in memory',
    { needs: ['cc'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const shim = new DiskShim(scene, scene.path('state'));
      const first = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
      const ledger = new Ledger();
      await ledger.publishMany(first, 3);
      shim.fail('sync error');
      await ledger.publishMany(first, 3);
      await first.stop('SIGKILL');
      // What the failed commits wrote may be in the log that is found now, though no sync has seen it.
      const second = await Daemon.start(scene, {
        webhook_url: receiver.url,
        env: shim.env,
        until: 'nothing',
      });
      await until('the trouble is told', () => second.told('the outbox cannot be written'));
      expect(second.told('ready')).toBeUndefined();
      shim.heal();
      await until('the daemon is ready', () => second.told('ready'));
      await ledger.publishMany(second, 3);
      receiver.behave(status(200));
      await expectKept({ receiver, ledger });
    },
  );

  for (const [trouble, more] of [
    ['write error', 'a write that fails'],
    ['write full', 'a disk that is full'],
  ] as const) {
    fault(`F03 ${more} acknowledges nothing, and heals`, { needs: ['cc'] }, async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const shim = new DiskShim(scene, scene.path('state'));
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 5);
      shim.fail(trouble);
      expect(await ledger.publishMany(daemon, 10)).toEqual(Array(10).fill(503));
      shim.heal();
      expect(await ledger.publishMany(daemon, 10, 4)).toEqual(Array(10).fill(202));
      await expectKept({ receiver, ledger });
    });
  }

  fault(
    'F06 a start on a full disk says so and acknowledges nothing',
    { needs: ['root', 'loop device'] },
    async (scene) => {
      const disk = new LoopDisk(scene);
      disk.fill();
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, {
        webhook_url: receiver.url,
        state_dir: disk.path('state'),
        until: 'nothing',
      });
      await until(
        'the daemon ended or told',
        () => daemon.exit || daemon.told('the outbox cannot be written'),
      );
      expectEndedClearlyOrAlive(daemon);
      expect(receiver.requests).toEqual([]);
    },
  );

  fault(
    'F06 a start on a read-only disk ends with one line',
    { needs: ['root', 'loop device'] },
    async (scene) => {
      const disk = new LoopDisk(scene);
      disk.makeReadOnly();
      const daemon = await Daemon.start(scene, {
        webhook_url: 'http://127.0.0.1:9/',
        state_dir: disk.path('state'),
        until: 'nothing',
      });
      await daemon.ended();
      expectEndedClearlyOrAlive(daemon);
    },
  );

  fault(
    'F06 a disk that fills up while running refuses publishes, and heals',
    { needs: ['root', 'loop device'] },
    async (scene) => {
      const disk = new LoopDisk(scene);
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir: disk.path('state') });
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 5);
      receiver.behave(status(503));
      disk.fill();
      // Room that the log already has may still be used: it is on the disk.
      const refused = await until('a publish is refused', async () => {
        const answer = await ledger.publish(daemon, { filler: 'x'.repeat(200_000) });
        return answer?.status === 202 ? null : answer;
      });
      expect(refused.json?.error?.code).toBe('outbox_unavailable');
      disk.empty();
      receiver.behave(status(200));
      await until('publishing goes on', async () => (await ledger.publish(daemon))?.status === 202);
      await expectKept({ receiver, ledger, may_repeat: true });
      expect(daemon.exit).toBeNull();
    },
  );

  fault(
    'F06 a receiver that is told of an event on a full disk is not told again and again',
    { needs: ['cc'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(200, { delay_ms: 300 }));
      const shim = new DiskShim(scene, scene.path('state'));
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
      const ledger = new Ledger();
      const { status: code } = (await ledger.publish(daemon)) ?? {};
      expect(code).toBe(202);
      shim.fail('write full');
      await until('it was delivered', () => receiver.delivered().size >= 2);
      const sent = receiver.requests.length;
      // As long as three retries of an outcome that the disk does not take.
      await sleep(3_500);
      expect(receiver.requests.length).toBe(sent);
      shim.heal();
      await until('the outcome is on disk', async () => (await daemon.sandbox()).outbox.delivered === 2);
      await expectKept({ receiver, ledger });
    },
  );

  fault('F07 a short write is made good without anybody noticing', { needs: ['cc'] }, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    const shim = new DiskShim(scene, scene.path('state'));
    const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
    const ledger = new Ledger();
    shim.fail('write short');
    expect(await ledger.publishMany(daemon, 20, 4)).toEqual(Array(20).fill(202));
    shim.heal();
    await daemon.stop('SIGKILL');
    await Daemon.start(scene, { webhook_url: receiver.url });
    await expectKept({ receiver, ledger, may_repeat: true });
  });

  fault(
    'F07 a bit that the disk flips is told, with how many records it cost',
    { needs: ['cc', 'a look into daemons'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const shim = new DiskShim(scene, scene.path('state'));
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
      const kept = new Ledger();
      // The log is written back, and begun anew, when commits get a thread of their own.
      await until('commits have a thread of their own', async () => {
        await kept.publish(daemon);
        return daemon.commitsApart();
      });
      shim.fail('write flip');
      await new Ledger().publish(daemon);
      shim.heal();
      const behind = new Ledger();
      await behind.publishMany(daemon, 5);
      await daemon.stop('SIGKILL');
      receiver.behave(status(200));
      const again = await Daemon.start(scene, { webhook_url: receiver.url });
      expect(await again.metric('sandboxd_records_lost_total')).toBe(6);
      expect((await again.readiness()).says).toContain('6 acknowledged records are missing');
      expect(again.told('the outbox was damaged')).toMatchObject({ level: 'error', lost_records: 6 });
      await kept.publishMany(again, 3);
      await expectKept({ receiver, ledger: kept });
    },
  );

  fault(
    'F07 a disk that goes on flipping bits ends nothing and sends nothing that is not whole',
    { needs: ['cc'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const shim = new DiskShim(scene, scene.path('state'));
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
      shim.fail('write flip');
      const ledger = new Ledger();
      // More than the database keeps in memory, so that it reads its own pages again.
      for (let n = 0; n < 60; n++) await ledger.publish(daemon, { filler: 'x'.repeat(100_000) });
      receiver.behave(status(200));
      for (let n = 0; n < 20; n++) await ledger.publish(daemon);
      shim.heal();
      const { code } = await daemon.stop('SIGTERM');
      expect(code).toBe(0);
      const again = await Daemon.start(scene, { webhook_url: receiver.url, until: 'nothing' });
      await until('it is ready', () => again.told('ready') || again.exit);
      expect(again.exit).toBeNull();
      expect(receiver.requests.every(({ is_signed }) => is_signed)).toBe(true);
    },
  );

  fault('F07 a sync that lies costs nothing without a power cut', { needs: ['cc'] }, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    const shim = new DiskShim(scene, scene.path('state'));
    const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
    shim.fail('sync nothing');
    const ledger = new Ledger();
    expect(await ledger.publishMany(daemon, 20, 4)).toEqual(Array(20).fill(202));
    await daemon.stop('SIGKILL');
    await Daemon.start(scene, { webhook_url: receiver.url });
    await expectKept({ receiver, ledger, may_repeat: true });
  });

  fault(
    'F07 a sync that lied before a power cut is told as loss',
    { needs: ['root', 'loop device', 'xfs_io', 'cc'] },
    async (scene) => {
      const disk = new LoopDisk(scene);
      const state_dir = disk.path('state');
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const shim = new DiskShim(scene, state_dir);
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir, env: shim.env });
      shim.fail('sync nothing');
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 10);
      // The mark beside the database is synced some seconds after a change.
      await sleep(6_000);
      disk.cutPower();
      await daemon.stop('SIGKILL');
      disk.again();
      const again = await Daemon.start(scene, { webhook_url: receiver.url, state_dir });
      expect(await again.metric('sandboxd_records_lost_total')).toBeGreaterThanOrEqual(10);
      expect((await again.readiness()).says).toContain('degraded');
      expect(await new Ledger().publishMany(again, 3)).toEqual([202, 202, 202]);
    },
  );

  fault('F08 a write torn by death loses nothing that was acknowledged', { needs: ['cc'] }, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    const shim = new DiskShim(scene, scene.path('state'));
    const ledger = new Ledger();
    for (let round = 0; round < 3; round++) {
      shim.heal();
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, env: shim.env });
      await ledger.publishMany(daemon, 5);
      shim.fail('write torn');
      await ledger.publishMany(daemon, 3, 3);
      expect(await daemon.ended()).toMatchObject({ code: 137 });
    }
    await Daemon.start(scene, { webhook_url: receiver.url });
    await expectKept({ receiver, ledger, may_repeat: true });
  });

  fault(
    'F08 a power cut loses nothing that was acknowledged',
    { needs: ['root', 'loop device', 'xfs_io'] },
    async (scene) => {
      const disk = new LoopDisk(scene);
      const state_dir = disk.path('state');
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behaveInTurn(status(503), status(200), status(200));
      const ledger = new Ledger();
      for (let round = 0; round < 4; round++) {
        const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir });
        // The first request alone waits for the API to be loaded.
        await daemon.ask('/healthz');
        const known = ledger.acknowledged.size;
        const publishing = ledger.publishMany(daemon, 60, 8);
        await until('some are acknowledged', () => ledger.acknowledged.size > known + round * 8);
        const sure = ledger.acknowledged.size;
        disk.cutPower();
        await publishing;
        // A sync that runs while the kernel plays the cut may be told to have worked and be lost: a bare file shows it.
        ledger.keepFirst(sure);
        expect(daemon.exit).toBeNull();
        await daemon.stop('SIGKILL');
        disk.again();
      }
      const last = await Daemon.start(scene, { webhook_url: receiver.url, state_dir });
      expect(await last.metric('sandboxd_records_lost_total')).toBe(0);
      expect(ledger.acknowledged.size).toBeGreaterThan(0);
      await expectKept({ receiver, ledger, may_repeat: true });
    },
  );

  fault(
    `F10 ${KILLS} kills under load lose nothing and change no byte`,
    { timeout_ms: 120_000 },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behaveInTurn(status(503), status(200), status(200));
      const ledger = new Ledger();
      for (let kill = 0; kill < KILLS; kill++) {
        const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
        const publishing = ledger.publishMany(daemon, 200, 8);
        await sleep((kill * 500) / KILLS);
        await daemon.stop('SIGKILL');
        await publishing;
      }
      receiver.behave(status(200));
      await Daemon.start(scene, { webhook_url: receiver.url });
      expect(ledger.acknowledged.size).toBeGreaterThan(0);
      await expectKept({ receiver, ledger, may_repeat: true });
    },
  );

  for (const calls of ['pwrite64', 'fsync,fdatasync']) {
    fault(`F10 death at the n-th ${calls} loses nothing`, { needs: ['strace'] }, async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const ledger = new Ledger();
      for (const nth of [1, 4, 9]) {
        const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
        const inject = `inject=${calls}:signal=SIGKILL:when=${nth}`;
        await Tracer.attach(scene, daemon.pid, ['-e', `trace=${calls}`, '-e', inject]);
        await ledger.publishMany(daemon, 30, 2);
        expect(await daemon.ended()).toMatchObject({ signal: 'SIGKILL' });
      }
      await Daemon.start(scene, { webhook_url: receiver.url });
      await expectKept({ receiver, ledger, may_repeat: true });
    });
  }

  fault(
    'F12 a disk that hangs is answered within 10 s, and everything else goes on',
    { needs: ['root', 'loop device', 'fsfreeze'], timeout_ms: 90_000 },
    async (scene) => {
      const disk = new LoopDisk(scene);
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir: disk.path('state') });
      const ledger = new Ledger();
      // The files are moved when commits get a thread of their own: a disk that hangs in the middle holds up the move.
      await until('commits have a thread of their own', async () => {
        await ledger.publish(daemon);
        return daemon.commitsApart();
      });
      await until('all is delivered', async () => (await daemon.sandbox()).outbox.pending === 0);
      disk.freeze();
      const publish = timed(() => ledger.publish(daemon));
      for (let n = 0; n < 5; n++) {
        const health = await timed(() => ask(`${daemon.url}/healthz`));
        expect(health.result.status).toBe(200);
        expect(health.took_ms).toBeLessThan(5_000);
      }
      const { result, took_ms } = await publish;
      expect(result?.status).toBe(503);
      expect(result?.json?.error?.code).toBe('outbox_unavailable');
      expect(took_ms).toBeLessThan(15_000);
      expect((await daemon.readiness()).status).toBe(503);
      disk.thaw();
      await until('publishing goes on', async () => (await ledger.publish(daemon))?.status === 202);
      await until('the daemon is ready', async () => (await daemon.readiness()).status === 200);
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F12 a publish that hangs shorter than that is acknowledged after the thaw',
    { needs: ['root', 'loop device', 'fsfreeze'] },
    async (scene) => {
      const disk = new LoopDisk(scene);
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url, state_dir: disk.path('state') });
      const ledger = new Ledger();
      disk.freeze();
      const publishing = ledger.publishMany(daemon, 4, 4);
      await sleep(1_500);
      expect(ledger.acknowledged.size).toBe(0);
      disk.thaw();
      expect(await publishing).toEqual([202, 202, 202, 202]);
      await expectKept({ receiver, ledger });
    },
  );

  fault(
    'F14 a limit on the size of files ends nothing, and publishes are refused',
    { needs: ['prlimit'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, {
        webhook_url: receiver.url,
        through: ['prlimit', '--fsize=40000'],
        until: 'nothing',
      });
      await until('it told its address', () => daemon.told('listening') || daemon.exit);
      const ledger = new Ledger();
      const statuses = await ledger.publishMany(daemon, 60);
      expect(statuses.at(-1)).toBe(503);
      expect(daemon.exit).toBeNull();
      expect((await ask(`${daemon.url}/healthz`)).status).toBe(200);
      await daemon.stop('SIGTERM');
      await Daemon.start(scene, { webhook_url: receiver.url });
      await expectKept({ receiver, ledger, may_repeat: true });
    },
  );

  fault(
    'F14 a limit that comes while it runs is like a full disk',
    { needs: ['prlimit', 'root'] },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 3);
      setLimit(daemon, '--fsize=40000:');
      const refused = await until('a publish is refused', async () => {
        const answer = await ledger.publish(daemon, { filler: 'x'.repeat(20_000) });
        return answer?.status === 503 ? answer : null;
      });
      expect(refused.json?.error?.code).toBe('outbox_unavailable');
      setLimit(daemon, '--fsize=unlimited:');
      await until('publishing goes on', async () => (await ledger.publish(daemon))?.status === 202);
      await expectKept({ receiver, ledger, may_repeat: true });
    },
  );

  fault(
    'F15 a second daemon on the same state directory ends at once, and a third goes on after a kill',
    {},
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const first = await Daemon.start(scene, { webhook_url: receiver.url });
      const ledger = new Ledger();
      await ledger.publishMany(first, 5);
      const began_ms = performance.now();
      const second = await Daemon.start(scene, { webhook_url: receiver.url, until: 'nothing' });
      expect(await second.ended()).toEqual({ code: 1, signal: null });
      expect(performance.now() - began_ms).toBeLessThan(5_000);
      expect(second.stderr).toEqual([
        expect.stringContaining(`is in use by another sandboxd (pid ${first.pid})`),
      ]);
      await first.stop('SIGKILL');
      receiver.behave(status(200));
      await Daemon.start(scene, { webhook_url: receiver.url });
      await expectKept({ receiver, ledger });
    },
  );

  fault('F16 a foreign reader of the database is refused and holds up nothing', {}, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
    const database = `${daemon.state_dir}/outbox.db`;
    const reader = new Database(database, { timeout: 0, readonly: true });
    scene.undo(() => reader.close());
    expect(() => reader.prepare('SELECT count(*) FROM records').get()).toThrow(/locked/);
    const ledger = new Ledger();
    expect(new Set(await ledger.publishMany(daemon, 300, 8))).toEqual(new Set([202]));
    await expectKept({ receiver, ledger });
  });

  fault(
    'F16 the log is bounded under load and at rest, with small and with large bodies',
    { timeout_ms: 120_000 },
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(status(503));
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
      // There is none for a moment, when commits get a thread of their own.
      const log_bytes = () =>
        statSync(`${daemon.state_dir}/outbox.db-wal`, { throwIfNoEntry: false })?.size ?? 0;
      let largest = 0;
      for (const [count, filler] of [
        [1_500, 100],
        [80, 900_000],
      ] as const) {
        for (let n = 0; n < count; n += 10) {
          await Promise.all(Array.from({ length: 10 }, () => daemon.publish({ filler: 'x'.repeat(filler) })));
          largest = Math.max(largest, log_bytes());
        }
      }
      expect(largest).toBeLessThan(32 * 1024 * 1024);
      await daemon.publish({});
      expect(log_bytes()).toBeLessThanOrEqual(16 * 1024 * 1024);
      expect(modesOf(daemon.state_dir)).toEqual(
        modesOf(daemon.state_dir).filter((mode) => mode === '600' || mode === '700'),
      );
    },
  );
});

function syncsOf(tracer: Tracer): string[] {
  return tracer.lines().filter((line) => /f(data)?sync\(\d+<[^>]*outbox\.db/.test(line));
}

function expectEndedClearlyOrAlive(daemon: Daemon): void {
  if (!daemon.exit) {
    expect(daemon.told('the outbox cannot be written')).toBeDefined();
    return;
  }
  expect(daemon.exit.code).toBe(1);
  expect(daemon.stderr).toEqual([expect.stringMatching(/^sandboxd: .*(read-only|no space|full)/i)]);
}

function modesOf(folder: string): string[] {
  return readdirSync(folder).map((name) => (statSync(`${folder}/${name}`).mode & 0o777).toString(8));
}
