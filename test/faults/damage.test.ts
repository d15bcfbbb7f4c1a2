import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { expectKept } from './support/judge.ts';
import { Ledger } from './support/ledger.ts';
import { fault } from './support/scene.ts';
import { hang, status } from './support/steps.ts';
import { until } from './support/until.ts';

const WRITTEN_BACK = 5;
const IN_THE_LOG = 5;

interface Shape {
  name: string;
  spoil: (state_dir: string) => void;
  /** How many of the acknowledged events are gone. */
  lost: (counts: { all: number; in_the_log: number }) => [from: number, to: number];
}

const SHAPES: Shape[] = [
  {
    name: 'junk where the header was',
    spoil: (state_dir) => overwrite(database(state_dir), 0, Buffer.alloc(512, 'junk')),
    // What the first page holds is the same in every outbox.
    lost: () => [0, 0],
  },
  {
    name: 'junk from the first byte to the last',
    spoil: (state_dir) =>
      overwrite(database(state_dir), 0, Buffer.alloc(statSync(database(state_dir)).size, 'junk')),
    lost: ({ all }) => [1, all],
  },
  {
    name: '0 bytes',
    spoil: (state_dir) => truncateSync(database(state_dir)),
    // What the log holds can be read without the database.
    lost: ({ all }) => [0, all],
  },
  {
    name: 'a log that was deleted',
    spoil: (state_dir) => rmSync(log(state_dir)),
    lost: ({ in_the_log }) => [in_the_log, in_the_log],
  },
  {
    name: 'a log that was cut',
    spoil: (state_dir) => truncateSync(log(state_dir), Math.round(statSync(log(state_dir)).size * 0.6)),
    lost: ({ in_the_log }) => [1, in_the_log],
  },
  {
    name: 'one byte of the log that was changed',
    spoil: (state_dir) => flip(log(state_dir), Math.round(statSync(log(state_dir)).size * 0.6)),
    lost: ({ in_the_log }) => [1, in_the_log],
  },
  {
    name: 'a database that was deleted',
    spoil: (state_dir) => rmSync(database(state_dir)),
    lost: ({ all }) => [0, all],
  },
];

describe('damage', () => {
  for (const { name, spoil, lost } of SHAPES) {
    fault(
      `F13 ${name}: kept aside, told with what is missing, and gone on from`,
      { beside: true },
      async (scene) => {
        const receiver = await HostileReceiver.start(scene, { secret: SECRET });
        receiver.behave(hang);
        const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
        const ledger = new Ledger();
        await ledger.publishMany(daemon, WRITTEN_BACK);
        await post(daemon, '/api/v1/sandbox/pause');
        await post(daemon, '/api/v1/sandbox/resume');
        await ledger.publishMany(daemon, IN_THE_LOG);
        await daemon.stop('SIGKILL');
        spoil(daemon.state_dir);
        const spoiled = sizes(daemon.state_dir);

        receiver.behave(status(200));
        const again = await Daemon.start(scene, { webhook_url: receiver.url });
        const afterwards = new Ledger();
        expect(await afterwards.publishMany(again, 3)).toEqual([202, 202, 202]);
        await expectKept({ receiver, ledger: afterwards, may_repeat: true });
        await until('what is left is delivered', async () => (await again.sandbox()).outbox.pending === 0);

        // Beside the published ones: ready and paused, which were written back, and resumed, which was not.
        const counts = { all: WRITTEN_BACK + IN_THE_LOG + 3, in_the_log: IN_THE_LOG + 1 };
        const [from, to] = lost(counts);
        const lost_records = await again.metric('sandboxd_records_lost_total');
        expect(lost_records).toBeGreaterThanOrEqual(from);
        expect(lost_records).toBeLessThanOrEqual(to);
        expect(again.told('the outbox was damaged')).toMatchObject({ level: 'error' });
        const { says } = await again.readiness();
        expect(says).toContain('degraded');
        if (lost_records > 0)
          expect(says).toMatch(RegExp(`\\b${lost_records} acknowledged records? (is|are) missing`));
        expect(readdirSync(again.state_dir).some((file) => file.startsWith('outbox-damaged-1.db'))).toBe(
          true,
        );
        for (const file of readdirSync(again.state_dir).filter((each) =>
          each.startsWith('outbox-damaged-1'),
        )) {
          const kept = statSync(join(again.state_dir, file));
          expect(kept.mode & 0o777).toBe(0o600);
          expect(kept.size).toBe(spoiled[file.replace('outbox-damaged-1', 'outbox')] ?? 0);
        }
        const survivors = [...ledger.acknowledged.keys()].filter((id) => receiver.delivered().has(id)).length;
        expect(survivors).toBeGreaterThanOrEqual(ledger.acknowledged.size - lost_records);
        const sequences = receiver.requests.map(({ headers }) => Number(headers.get('ce-sequence')));
        expect(Math.max(...sequences)).toBeGreaterThanOrEqual(counts.all + 3);

        // What was told is settled: the next start finds nothing wrong.
        await again.stop('SIGKILL');
        const third = await Daemon.start(scene, { webhook_url: receiver.url });
        expect((await third.readiness()).says).not.toContain('degraded');
      },
    );
  }

  fault('F13 junk in the lock is no obstacle', {}, async (scene) => {
    const daemon = await Daemon.start(scene, { webhook_url: 'http://127.0.0.1:9/' });
    await daemon.stop('SIGKILL');
    overwrite(join(daemon.state_dir, 'lock'), 0, Buffer.alloc(4096, 'junk'));
    const again = await Daemon.start(scene, { webhook_url: 'http://127.0.0.1:9/' });
    expect((await again.publish({})).status).toBe(202);
  });

  fault(
    'F13 damage that shows while the daemon runs: set aside, what can be read is taken over',
    {},
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(hang);
      const first = await Daemon.start(scene, { webhook_url: receiver.url });
      const ledger = new Ledger();
      for (let n = 0; n < 40; n++) await ledger.publish(first, { filler: 'x'.repeat(2_000) });
      await first.stop('SIGTERM');
      // A page in the middle holds some of the records; the header and the tree's root are whole.
      const size = statSync(database(first.state_dir)).size;
      overwrite(database(first.state_dir), Math.floor(size / 2 / 4096) * 4096, Buffer.alloc(4096, 0xff));

      receiver.behave(status(200));
      const again = await Daemon.start(scene, { webhook_url: receiver.url, until: 'listening' });
      const afterwards = new Ledger();
      await until('publishing works', async () => (await afterwards.publish(again))?.status === 202);
      await until(
        'the damage is told',
        () =>
          again.told('set aside') ||
          again.told('the outbox was damaged') ||
          again.told('the disk changed records'),
      );
      await expectKept({ receiver, ledger: afterwards, may_repeat: true });
      await until('what is left is delivered', async () => (await again.sandbox()).outbox.pending === 0);
      const lost_records = await again.metric('sandboxd_records_lost_total');
      const missing = [...ledger.acknowledged.keys()].filter((id) => !receiver.delivered().has(id)).length;
      expect(missing).toBeLessThanOrEqual(lost_records);
      expect(lost_records).toBeLessThan(20);
      expect((await again.readiness()).says).toContain('degraded');
      expect(receiver.requests.every(({ is_signed }) => is_signed)).toBe(true);
    },
  );

  fault('F13 a record that the disk changed is never sent, and told', {}, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    receiver.behave(hang);
    const first = await Daemon.start(scene, { webhook_url: receiver.url });
    const ledger = new Ledger();
    await ledger.publishMany(first, 5);
    const spoiled = new Ledger();
    await spoiled.publish(first, { filler: 'the words that are changed' });
    await first.stop('SIGTERM');
    const offset = readFileSync(database(first.state_dir)).indexOf('the words that are changed');
    expect(offset).toBeGreaterThan(0);
    flip(database(first.state_dir), offset);

    receiver.requests.length = 0;
    receiver.behave(status(200));
    const again = await Daemon.start(scene, { webhook_url: receiver.url });
    await expectKept({ receiver, ledger });
    await until('it is told', () => again.told('the disk changed records'));
    expect(await again.metric('sandboxd_records_lost_total')).toBe(1);
    const [event_id = ''] = spoiled.acknowledged.keys();
    expect(receiver.of(event_id)).toEqual([]);
    expect((await again.delivery(event_id)).state).toBe('failed');
  });

  for (const [name, remove] of [
    ['the database', (state_dir: string) => rmSync(database(state_dir))],
    ['the log', (state_dir: string) => rmSync(log(state_dir))],
    ['the whole state directory', (state_dir: string) => rmSync(state_dir, { recursive: true })],
    [
      'the state directory, moved away',
      (state_dir: string) => renameSync(state_dir, `${state_dir}-elsewhere`),
    ],
  ] as const) {
    fault(
      `F57 ${name} removed while running: told, written anew, nothing lost`,
      { beside: true },
      async (scene) => {
        const receiver = await HostileReceiver.start(scene, { secret: SECRET });
        receiver.behave(hang);
        const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
        const ledger = new Ledger();
        await ledger.publishMany(daemon, 5);
        remove(daemon.state_dir);
        expect(await ledger.publishMany(daemon, 5)).toEqual(Array(5).fill(202));
        expect(daemon.told('removed or replaced')).toMatchObject({ level: 'error' });
        expect((await daemon.readiness()).says).toContain('removed or replaced');
        expect(existsSync(join(daemon.state_dir, 'control-token'))).toBe(true);
        expect((statSync(daemon.state_dir).mode & 0o777).toString(8)).toBe('700');
        const second = await Daemon.start(scene, { webhook_url: receiver.url, until: 'nothing' });
        expect((await second.ended()).code).toBe(1);
        // A process needs a folder of its own, too: it starts, or the caller is told why not.
        const spawned = await daemon.ask('/api/v1/processes', {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"command":["true"]}',
        });
        expect([201, 503]).toContain(spawned.status);

        await daemon.stop('SIGKILL');
        receiver.behave(status(200));
        await Daemon.start(scene, { webhook_url: receiver.url });
        await expectKept({ receiver, ledger, may_repeat: true });
      },
    );
  }

  fault('F57 a state directory that another daemon has by now: exit 1 and one line', {}, async (scene) => {
    const receiver = await HostileReceiver.start(scene, { secret: SECRET });
    receiver.behave(hang);
    const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
    expect((await daemon.publish({})).status).toBe(202);
    // Whatever it commits by itself puts its files back in place.
    daemon.signal('SIGSTOP');
    rmSync(daemon.state_dir, { recursive: true });
    const other = await Daemon.start(scene, { webhook_url: receiver.url });
    daemon.signal('SIGCONT');
    await daemon.publish({}).catch(() => null);
    expect((await daemon.ended()).code).toBe(1);
    expect(daemon.told('the outbox writer failed')).toMatchObject({
      reason: expect.stringContaining('is in use by another sandboxd'),
    });
    expect((await other.publish({})).status).toBe(202);
  });

  fault(
    'F57 the database removed under a long log: nothing of the log is laid over the new one',
    {},
    async (scene) => {
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      receiver.behave(hang);
      const daemon = await Daemon.start(scene, { webhook_url: receiver.url });
      const ledger = new Ledger();
      await ledger.publishMany(daemon, 600, 32);
      rmSync(database(daemon.state_dir));
      for (let n = 0; n < 4; n++) {
        await ledger.publish(daemon);
        await until(
          'a commit is over',
          async () => ((await daemon.sandbox()).outbox.pending ?? 0) >= 601 + n,
        );
      }
      expect(daemon.told('removed or replaced')).toMatchObject({ level: 'error' });
      expect(daemon.told('malformed')).toBeUndefined();
      await daemon.stop('SIGKILL');
      receiver.behave(status(200));
      const again = await Daemon.start(scene, { webhook_url: receiver.url });
      await expectKept({ receiver, ledger, may_repeat: true });
      expect((await again.readiness()).says).not.toContain('missing');
    },
  );
});

function database(state_dir: string): string {
  return join(state_dir, 'outbox.db');
}

function log(state_dir: string): string {
  return join(state_dir, 'outbox.db-wal');
}

function sizes(state_dir: string): Record<string, number> {
  return Object.fromEntries(
    readdirSync(state_dir).map((file) => [file, statSync(join(state_dir, file)).size]),
  );
}

function overwrite(path: string, offset: number, bytes: Buffer): void {
  const file = openSync(path, 'r+');
  writeSync(file, bytes, 0, bytes.length, offset);
  closeSync(file);
}

function flip(path: string, offset: number): void {
  const file = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(file, byte, 0, 1, offset);
  byte[0] = (byte[0] ?? 0) ^ 1;
  writeSync(file, byte, 0, 1, offset);
  closeSync(file);
}

async function post(daemon: Daemon, path: string): Promise<void> {
  const { status: code } = await daemon.ask(path, { method: 'POST' });
  expect(code).toBe(200);
}
