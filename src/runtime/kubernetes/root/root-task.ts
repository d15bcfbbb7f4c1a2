import { parseArgs } from 'node:util';

/** What the program of a persistent root is given to do. */
export interface RootTask {
  /** The volume's folder for the root. */
  root: string;
  /** Mount points that no process of the sandbox may move. */
  own: string[];
  /** The control socket, and where the daemon makes it. */
  socket: string;
  early_socket: string;
  /** What must be there before anything is done; null: nothing. */
  wait_for: string | null;
  /** The daemon's command line. */
  command: string[];
}

/** The arguments that hold a task. */
export function taskArguments({ root, own, socket, early_socket, wait_for, command }: RootTask): string[] {
  return [
    ...['--root', root, '--socket', socket, '--early-socket', early_socket],
    ...own.flatMap((path) => ['--own', path]),
    ...(wait_for === null ? [] : ['--wait-for', wait_for]),
    ...['--', ...command],
  ];
}

/** The task in a program's arguments. */
export function rootTask(args: string[]): RootTask {
  const string = { type: 'string' } as const;
  const options = { root: string, socket: string, 'early-socket': string, 'wait-for': string };
  const { values, positionals } = parseArgs({
    args,
    options: { ...options, own: { ...string, multiple: true } },
    allowPositionals: true,
  });
  const { root = '', socket = '', own = [], 'wait-for': wait_for = null } = values;
  return { root, socket, own, wait_for, early_socket: values['early-socket'] ?? '', command: positionals };
}
