import { existsSync } from 'node:fs';
import { systemClock } from '../base/clock.ts';
import { createLog } from '../base/log.ts';
import { StartError } from '../contract/errors.ts';
import { chooseRuntime } from '../runtime/choose.ts';
import type { ManagerConfig } from './config/config.ts';
import { Manager } from './manager.ts';
import { startSummary } from './start-summary.ts';

/**
 * Runs a manager until a signal ends it; resolves with the exit code. `program` is the path of the program: the first
 * start, and each at a terminal, prints on stdout where everything is and what to type next.
 */
export async function runManager(config: ManagerConfig, program: string): Promise<number> {
  const is_told = process.stdout.isTTY || !existsSync(config.secret_key_file);
  const log = createLog(config.log_level);
  const runtime = await chooseRuntime(config, systemClock, log);
  const manager = new Manager({ config, log, clock: systemClock, runtime });
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  let is_ending = false;
  const shutDown = (signal: NodeJS.Signals) => {
    // The second signal does not wait.
    if (is_ending) return end(0);
    is_ending = true;
    log.info({ signal }, 'shutting down');
    void manager.stop().then(() => end(0));
  };
  process.on('SIGTERM', shutDown);
  process.on('SIGINT', shutDown);
  void manager.displaced.then((reason) => {
    if (is_ending) return;
    is_ending = true;
    log.fatal({ reason }, 'ending: the database is no longer held by this manager');
    void manager.stop().then(() => end(1));
  });
  process.on('uncaughtException', (error) => {
    log.fatal({ reason: error.message, stack: error.stack }, 'unexpected error');
    end(1);
  });
  const summary = () =>
    startSummary({ config, url: manager.url, runtime, program, has_tokens: manager.has_tokens });
  // Whoever started it misses the summary alone.
  process.stdout.on('error', ({ message }) => log.warn({ reason: message }, 'the summary cannot be printed'));
  const telling = () => void (is_told && process.stdout.write(summary()));
  const starting = manager.start().then(telling, (error) => {
    // A signal may end a start.
    if (is_ending) return;
    if (error instanceof StartError) throw error;
    throw new StartError((error as Error).message, 1, error);
  });
  await Promise.race([starting, ended]);
  return ended;
}
