/**
 * Watches a directory and keeps tree and events in a file of commits, one JSON line each, as one transaction:
 * `node watch-program.ts DIR COMMITS_FILE [EVENTS_FILE]`. The events file has one line per event, as a receiver would
 * keep it. Prints `ready` with the status; SIGTERM stops it and prints `stopped` with the status.
 */
import { existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { systemClock } from '../../../src/base/clock.ts';
import { createLog } from '../../../src/base/log.ts';
import { Watcher } from '../../../src/watch/thread/watcher.ts';
import { readCommits } from './commit-file.ts';
import { MemoryStore } from './memory-store.ts';

const [watch_dir = '', commits_file = '', events_file] = process.argv.slice(2);
const store = new MemoryStore();
const kept = existsSync(commits_file) ? readFileSync(commits_file, 'utf8') : '';
for (const batch of readCommits(kept)) await store.commit(batch);
const commits = openSync(commits_file, 'a');
// What was cut off by a kill was not committed.
if (kept !== '' && !kept.endsWith('\n')) writeSync(commits, '\n');
const out = events_file ? openSync(events_file, 'a') : null;
let count = 0;
store.onCommit = (batch) => {
  writeSync(commits, `${JSON.stringify(batch)}\n`);
  const recv_ms = Date.now();
  const lines = batch.events.map(({ payload }) =>
    JSON.stringify({ recv_ms, body: { event_id: `${process.pid}-${++count}`, payload } }),
  );
  if (out !== null && lines.length > 0) writeSync(out, `${lines.join('\n')}\n`);
};
const options = { watch_dir, ignore: [], own_paths: [], clock: systemClock, log: createLog('info') };
const watcher = new Watcher({ ...options, store });
const keep_alive = setInterval(() => {}, 60_000);
const start_ms = performance.now();
await watcher.start();
console.log('ready', JSON.stringify({ ms: Math.round(performance.now() - start_ms), ...watcher.status() }));
process.on('SIGTERM', async () => {
  console.log('stopped', JSON.stringify({ rss: process.memoryUsage().rss, ...watcher.status() }));
  await watcher.stop();
  clearInterval(keep_alive);
});
