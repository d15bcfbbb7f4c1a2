import { systemClock } from '../base/clock.ts';
import type { ProcessView } from '../contract/processes.ts';
import type { ProcessState } from '../contract/words.ts';
import { answeredProcesses } from './api/list-processes.ts';
import { PROCESS_ROWS } from './api/row-kinds.ts';
import { soundRows, tellLeftOut } from './api/sound-rows.ts';
import type { Context } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';
import type { Output, Style } from './terminal/output.ts';
import { printable } from './terminal/printable.ts';
import { glance, size } from './terminal/quantity.ts';
import { table } from './terminal/table.ts';

/** What is shown at least of a command. */
const COMMAND_MIN_COLUMNS = 16;

const STATE_STYLES: Record<ProcessState, Style> = {
  running: 'green',
  paused: 'yellow',
  restarting: 'yellow',
  exited: 'dim',
  crashed: 'red',
};

/** Lists processes, running and ended. Contract section 4, `GET /processes`. */
export async function ps({ sandbox, out, err, json }: Context): Promise<ExitCode> {
  const answered = await answeredProcesses(sandbox);
  if (json) {
    await out.line(JSON.stringify({ processes: answered }));
    return EXIT.ok;
  }
  const { rows, left_out } = await soundRows<ProcessView>(answered, PROCESS_ROWS);
  if (answered.length === 0) await err.line('no processes');
  else await out.lines(processTable(rows, out, systemClock.wallMs()));
  return tellLeftOut(err, left_out);
}

/** A command as a user would type it in a shell, on one line. */
export function commandLine(command: readonly string[]): string {
  return printable(command.map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : quoted(part))).join(' '));
}

function shownCommand({ command, command_truncated }: ProcessView): string {
  return commandLine(command) + (command_truncated ? ' …' : '');
}

function quoted(part: string): string {
  return `'${part.replaceAll("'", "'\\''")}'`;
}

/** Processes as a table for `out`, titles first; `now_ms` is the wall time that ages count to. */
export function processTable(processes: ProcessView[], out: Output, now_ms: number): string[] {
  return table(
    [
      { title: 'PROCESS_ID', cell: ({ process_id }) => process_id },
      { title: 'PID', cell: ({ pid }) => String(pid), spare: 2 },
      {
        title: 'STATE',
        cell: ({ state, ready }) => (ready === false && state === 'running' ? 'starting' : state),
        style: ({ state }, text) => out.style(STATE_STYLES[state] ?? 'dim', text),
      },
      { title: 'CODE', cell: ({ exit_code, exited_at }) => (exited_at ? String(exit_code ?? '?') : '-') },
      { title: 'AGE', cell: ({ started_at }) => glance(now_ms - Date.parse(started_at)) },
      { title: 'RESTARTS', cell: ({ restart_count }) => String(restart_count) },
      { title: 'MEMORY', cell: ({ resource_usage }) => size(resource_usage.memory_bytes), spare: 3 },
      { title: 'NAME', cell: ({ name }) => printable(name ?? '-'), spare: 1 },
      { title: 'COMMAND', cell: shownCommand, cut_to: COMMAND_MIN_COLUMNS },
    ],
    processes,
    out.columns,
  );
}
