import { mkdirSync, readdirSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import type { FileModified } from '../../src/contract/events.ts';
import { Mirror } from '../support/watch/mirror.ts';
import { Daemon, SECRET } from './support/daemon.ts';
import { HostileReceiver } from './support/hostile-receiver.ts';
import { fault } from './support/scene.ts';
import { until } from './support/until.ts';

const ROUNDS = 4;
const FILES = 3_000;
const KILL_WITHIN_MS = 100;

/** The file events that were delivered, each once, in the order of their sequence. */
function told(receiver: HostileReceiver): FileModified[] {
  const by_sequence = new Map<number, FileModified>();
  for (const { body, event_type } of receiver.requests) {
    if (event_type !== 'file.modified') continue;
    const { sequence, payload } = JSON.parse(body.toString('utf8'));
    by_sequence.set(sequence, payload);
  }
  return [...by_sequence].sort(([a], [b]) => a - b).map(([, payload]) => payload);
}

function below(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) => {
    const path = join(dir, entry.name);
    return entry.isDirectory() ? [path, ...below(path)] : [path];
  });
}

/** New directories and files, some of which move or go; `made` is told how many so far. */
async function burst(watched: string, round: number, made: (files: number) => void): Promise<void> {
  for (let i = 0; i < FILES; i++) {
    const dir = join(watched, `r${round}`, `d${i % 40}`);
    if (i < 40) mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, `f${i}`), 'x');
    if (i % 5 === 1) renameSync(join(dir, `f${i}`), join(watched, `m${round}-${i}`));
    else if (i % 7 === 2) unlinkSync(join(dir, `f${i}`));
    made(i + 1);
    if (i % 20 === 0) await nextTurn();
  }
  if (round > 0) renameSync(join(watched, `r${round - 1}`), join(watched, `r${round}`, 'earlier'));
}

/** Makes a file and waits until it is told, and so everything before it. */
async function settled(receiver: HostileReceiver, path: string): Promise<FileModified[]> {
  writeFileSync(path, '');
  const mark = Buffer.from(JSON.stringify(path));
  await until(`${path} is told`, () => receiver.requests.some(({ body }) => body.includes(mark)), 60_000);
  return told(receiver);
}

describe('watch', () => {
  fault(
    'F57 kill -9 in the middle of a burst: the differences are told once, and lead to what is on the disk',
    { timeout_ms: 180_000 },
    async (scene) => {
      const watched = scene.path('watched');
      mkdirSync(watched);
      const receiver = await HostileReceiver.start(scene, { secret: SECRET });
      const start = () =>
        Daemon.start(scene, { webhook_url: receiver.url, options: ['--watch-dir', watched] });
      let daemon = await start();
      let interrupted = 0;
      for (let round = 0; round < ROUNDS; round++) {
        let files = 0;
        const before = receiver.requests.length;
        const bursting = burst(watched, round, (made) => {
          files = made;
        });
        await until('some is told', () => receiver.requests.length > before);
        await sleep(Math.random() * KILL_WITHIN_MS);
        await daemon.stop('SIGKILL');
        if (files < FILES) interrupted++;
        await bursting;
        daemon = await start();
      }
      expect(interrupted).toBeGreaterThan(0);
      const events = await settled(receiver, join(watched, 'end'));
      const mirror = new Mirror([], () => null);
      const twice: string[] = [];
      for (const event of events) {
        if (event.event_type === 'create' && mirror.has(event.path)) twice.push(event.path);
        mirror.apply(event);
      }
      expect(twice).toEqual([]);
      expect(mirror.entries().map(([path]) => path)).toEqual(below(watched).sort());
      await until('all is sent', async () => (await daemon.sandbox()).outbox.pending === 0);
      await daemon.stop('SIGKILL');
      await start();
      const more = await settled(receiver, join(watched, 'end again'));
      expect(more.slice(events.length).map(({ path }) => path)).toEqual([join(watched, 'end again')]);
    },
  );
});
