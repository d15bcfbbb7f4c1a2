import { getSystemErrorName } from 'node:util';
import { LAUNCHER } from './launcher.ts';
import { libc } from './libc.ts';

/**
 * Starts the launcher by posix_spawn(3). Node forks instead, which copies the page tables of the whole daemon: the larger
 * the daemon, the longer it stands still at each start. Here the child borrows the daemon's memory until it is the launcher.
 */

const POINTERS = 'const char **argv, const char **envp';
const call = {
  spawn: libc.func(
    `int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes, ${POINTERS})`,
  ),
  initActions: libc.func('int posix_spawn_file_actions_init(void *actions)'),
  destroyActions: libc.func('int posix_spawn_file_actions_destroy(void *actions)'),
  addClose: libc.func('int posix_spawn_file_actions_addclose(void *actions, int fd)'),
  addDup2: libc.func('int posix_spawn_file_actions_adddup2(void *actions, int fd, int as)'),
  initAttributes: libc.func('int posix_spawnattr_init(void *attributes)'),
  setFlags: libc.func('int posix_spawnattr_setflags(void *attributes, short flags)'),
  setDefault: libc.func('int posix_spawnattr_setsigdefault(void *attributes, const void *signals)'),
};

/** More than the C library's structures take on any machine. */
const STRUCT_BYTES = 512;
const SET_DEFAULT_SIGNALS = 0x04;
const SET_SIGNAL_MASK = 0x08;
const NEW_SESSION = 0x80;

const of_program = attributesOf(NEW_SESSION);
const of_helper = attributesOf(0);

/**
 * Starts the launcher as the leader of a session of its own, with these arguments, variables and files, by their number in
 * it; a file that is undefined is closed. `is_helper`: in this program's session, as one of its own helpers. Gives its pid, or
 * the system's error code. The caller must wait for its end, as the reaper does.
 */
export function spawnLauncher(
  args: readonly string[],
  env: readonly string[],
  files: readonly (number | undefined)[],
  { is_helper = false } = {},
): number | string {
  const attributes = is_helper ? of_helper : of_program;
  const actions = Buffer.alloc(STRUCT_BYTES);
  call.initActions(actions);
  try {
    for (const [fd, own] of files.entries()) {
      if (own === undefined) call.addClose(actions, fd);
      else call.addDup2(actions, own, fd);
    }
    const pid = new Int32Array(1);
    const errno = call.spawn(pid, LAUNCHER, actions, attributes, ['launcher', ...args, null], [...env, null]);
    return errno === 0 ? (pid[0] as number) : getSystemErrorName(-errno);
  } finally {
    call.destroyActions(actions);
  }
}

/** No signal blocked (the empty mask of a new structure), and none ignored. */
function attributesOf(flags: number): Buffer {
  const attributes = Buffer.alloc(STRUCT_BYTES);
  call.initAttributes(attributes);
  call.setFlags(attributes, flags | SET_SIGNAL_MASK | SET_DEFAULT_SIGNALS);
  call.setDefault(attributes, Buffer.alloc(STRUCT_BYTES, 0xff));
  return attributes;
}
