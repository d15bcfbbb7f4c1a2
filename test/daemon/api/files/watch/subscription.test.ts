import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../../../src/base/clock.ts';
import { createLog } from '../../../../../src/base/log.ts';
import { Subscription } from '../../../../../src/daemon/api/files/watch/subscription.ts';
import { WatchedTrees } from '../../../../../src/daemon/api/files/watch/watched-trees.ts';
import { eventually } from '../../../../support/eventually.ts';
import { scratchFolder } from '../../../../support/scratch.ts';

/** A client that can be made too slow. */
function slowClient(trees: WatchedTrees, path: string) {
  const sent: { type: string; event?: string; path?: string; old_path?: string }[] = [];
  const client = { is_behind: false, asked: 0, room: Promise.withResolvers<void>() };
  const link = {
    isBehind: () => {
      if (client.is_behind) client.asked += 1;
      return client.is_behind;
    },
    caughtUp: () => client.room.promise,
    send: (message: object) => sent.push(message as (typeof sent)[number]),
    onFailure: (_: string, error: unknown) => {
      throw error;
    },
  };
  const subscription = new Subscription({ watch_id: 'w', path, real: path, recursive: true, trees, link });
  const events = () =>
    sent.map(({ type, event, path, old_path }) =>
      type === 'event' ? [event, path, old_path].filter(Boolean) : type,
    );
  return { client, subscription, events };
}

test('a client that was too slow learns of it, then of the differences alone, and then goes on', async () => {
  const folder = scratchFolder();
  const trees = new WatchedTrees({ clock: systemClock, log: createLog('silent'), own_paths: [] });
  onTestFinished(() => trees.stop());
  for (const name of ['kept', 'changed', 'moved', 'removed']) writeFileSync(join(folder, name), name);
  const slow = slowClient(trees, folder);
  const quick = slowClient(trees, folder);
  await Promise.all([slow.subscription.start(), quick.subscription.start()]);
  slow.client.is_behind = true;
  writeFileSync(join(folder, 'new'), '');
  await eventually(() => expect(slow.client.asked).toBe(1));
  writeFileSync(join(folder, 'changed'), 'more than before');
  renameSync(join(folder, 'moved'), join(folder, 'renamed'));
  rmSync(join(folder, 'removed'));
  writeFileSync(join(folder, 'passing'), '');
  rmSync(join(folder, 'passing'));
  mkdirSync(join(folder, 'dir'));
  await eventually(() => expect(quick.events()).toContainEqual(['create', join(folder, 'dir')]));
  expect(slow.events()).toEqual([]);
  slow.client.is_behind = false;
  slow.client.room.resolve();
  await eventually(() => expect(slow.events()).toHaveLength(6));
  expect(slow.events()[0]).toBe('overflow');
  expect(slow.events().slice(1).sort()).toEqual([
    ['create', join(folder, 'dir')],
    ['create', join(folder, 'new')],
    ['remove', join(folder, 'removed')],
    ['rename', join(folder, 'renamed'), join(folder, 'moved')],
    ['write', join(folder, 'changed')],
  ]);
  writeFileSync(join(folder, 'dir/later'), '');
  await eventually(() => expect(slow.events().at(-1)).toEqual(['create', join(folder, 'dir/later')]));
  await Promise.all([slow.subscription.stop(), quick.subscription.stop()]);
});
