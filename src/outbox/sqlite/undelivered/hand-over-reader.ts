import { systemClock } from '../../../base/clock.ts';
import type { FromReader, ToReader } from './hand-over-process.ts';
import { readUndelivered } from './undelivered-reader.ts';
import type { HandOverSource } from './undelivered-record.ts';

/**
 * The program that reads one hand-over: what hostile files do to SQLite or to the memory ends here. It gives a page
 * each time it is asked for one.
 */
function run(send: (message: FromReader) => void): void {
  let pages: ReturnType<typeof readUndelivered> | null = null;
  process.on('message', (message: ToReader) => {
    try {
      pages ??= readUndelivered(message as HandOverSource, systemClock);
      const { value, done } = pages.next();
      send(done ? { kind: 'end' } : { kind: 'page', page: value });
    } catch (error) {
      const { code = '', message: reason } = error as NodeJS.ErrnoException;
      send({ kind: 'failed', code, reason });
    }
  });
  process.on('disconnect', () => process.exit(0));
}

if (process.send) run((message) => process.send?.(message));
