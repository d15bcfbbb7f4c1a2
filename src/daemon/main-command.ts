import type { Writable } from 'node:stream';
import { ApiError, StartError } from '../contract/errors.ts';
import { CannotStart } from '../process/start/command.ts';
import type { Supervisor } from '../process/supervisor.ts';
import type { DaemonConfig } from './config.ts';

const PROCESS_ID = 'main';
/** The code with which a shell ends for a program that is there and cannot be run. */
const CANNOT_EXECUTE = 126;

/** The command after `--`: supervised like any process; the daemon ends with it. Contract section 4. */
export class MainCommand {
  readonly #supervisor: Supervisor;

  private constructor(supervisor: Supervisor) {
    this.#supervisor = supervisor;
  }

  /** Starts the configured command. Throws StartError with exit code 127 or 126 if that fails. */
  static async start(supervisor: Supervisor, config: DaemonConfig, stdout: Writable): Promise<MainCommand> {
    const request = {
      process_id: PROCESS_ID,
      command: config.command,
      restart: { policy: config.restart },
    };
    try {
      await supervisor.spawn(request, { copy_to: { stdout }, replace_ended: true });
    } catch (error) {
      if (error instanceof CannotStart) throw new StartError(error.message, error.exit_code, error);
      if (error instanceof ApiError && error.code === 'unavailable')
        throw new StartError(error.message, CANNOT_EXECUTE, error);
      throw error;
    }
    return new MainCommand(supervisor);
  }

  /** Resolves with the exit code when the command has ended and no restart follows. */
  async ended(): Promise<number> {
    const { exit_code } = await this.#supervisor.finished(PROCESS_ID);
    return exit_code ?? 1;
  }

  /** Sends a signal to the command; returns false if it has ended. */
  forward(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP'): boolean {
    try {
      this.#supervisor.forward(PROCESS_ID, signal);
      return true;
    } catch {
      return false;
    }
  }
}
