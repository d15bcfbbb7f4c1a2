import { parseArgs } from 'node:util';

/** Where the volume's folder for the root is while it is being made; nothing of the sandbox ever sees it. */
export const ROOT_MOUNT = '/run/sandboxd-root';

/** The folders in it. */
export const ROOT_FOLDERS = {
  /** What the sandbox has changed of its image. */
  upper: 'upper',
  /** The kernel's own. */
  work: 'work',
  /** Where the root is mounted. */
  merged: 'merged',
} as const;

/** The name of the control socket until the root is in its place: the keeper does not look for it before. */
export const EARLY_SOCKET = 'starting.sock';

/** The task of the program of a persistent root. */
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
