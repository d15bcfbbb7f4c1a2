/**
 * Watches a directory and writes each committed event as one JSON line, as a receiver would keep it:
 * `node watch-program.ts DIR EVENTS_FILE [ROWS_FILE]`. Prints `ready`. SIGTERM stops it.
 */
import { existsSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { systemClock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import { Watcher } from '../../src/watch/watcher.ts';
import { MemoryStore } from './memory-store.ts';

const [watch_dir = '', events_file = '', rows_file] = process.argv.slice(2);
const out = openSync(events_file, 'a');
const store = new MemoryStore();
if (rows_file && existsSync(rows_file)) {
  for (const [id, entry] of JSON.parse(readFileSync(rows_file, 'utf8'))) store.rows.set(id, entry);
}
let count = 0;
store.onCommit = ({ events }) => {
  const recv_ms = Date.now();
  const lines = events.map(({ payload }) =>
    JSON.stringify({ recv_ms, body: { event_id: `${process.pid}-${++count}`, payload } }),
  );
  if (lines.length > 0) writeSync(out, `${lines.join('\n')}\n`);
};
const watcher = new Watcher({
  watch_dir,
  ignore: [],
  own_paths: [],
  clock: systemClock,
  log: createLog('info'),
  store,
});
const keep_alive = setInterval(() => {}, 60_000);
const start_ms = performance.now();
await watcher.start();
console.log('ready', JSON.stringify({ ms: Math.round(performance.now() - start_ms), ...watcher.status() }));
process.on('SIGTERM', async () => {
  console.log('stopped', JSON.stringify({ rss: process.memoryUsage().rss, ...watcher.status() }));
  await watcher.stop();
  if (rows_file) writeFileSync(rows_file, JSON.stringify([...store.rows]));
  clearInterval(keep_alive);
});
