import { NO_SIGUSR1 } from '../../../base/engine/flags.ts';
import { EARLY_SOCKET, ROOT_MOUNT } from './root-folders.ts';
import { type RootTask, taskArguments } from './root-task.ts';

/**
 * What it takes to make a root: mounts, and to change files of every owner and mode as the sandbox does. It is of the
 * sandbox's own user namespace and means nothing on the node; the daemon and all that it starts have none of it.
 */
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'SETFCAP', 'SETPCAP', 'SYS_ADMIN'];

/** The parts of a sandbox's container with a persistent root. `library`: where the programs are in it. */
export function rootContainer(
  task: Omit<RootTask, 'root' | 'early_socket'>,
  library: string,
  sub_path: string,
) {
  return {
    command: [
      ...[`${library}/node`, NO_SIGUSR1, '--no-warnings', `${library}/root.cjs`],
      ...taskArguments({ ...task, root: ROOT_MOUNT, early_socket: earlySocket(task.socket) }),
    ],
    // The default profile of a node forbids mounts. The program has the product's own filter before anything else begins.
    securityContext: {
      capabilities: { drop: ['ALL'], add: CAPABILITIES },
      seccompProfile: { type: 'Unconfined' },
      appArmorProfile: { type: 'Unconfined' },
    },
    volumeMounts: [{ name: 'data', mountPath: ROOT_MOUNT, subPath: sub_path }],
  };
}

/** Where the daemon makes its control socket: in the same folder. */
export function earlySocket(socket: string): string {
  return socket.replace(/[^/]+$/, EARLY_SOCKET);
}
