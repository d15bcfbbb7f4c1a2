import { seccompFilter } from '../seccomp/filter.ts';

/** One user without rights outside, who cannot create further namespaces. */
const USER_NAMESPACE = ['--unshare-user', '--uid', '0', '--gid', '0', '--disable-userns'];

/** A set of walls around a sandbox. */
export interface Walls {
  /** Whether each sandbox has a user of its own, to whom its root is mapped. */
  has_users: boolean;
  /** Whether it is prepared as root in a mount namespace of its own, with read-only device nodes. */
  has_prelude: boolean;
  /** Bubblewrap's options for a user namespace; empty without one. */
  user_namespace: string[];
  seccomp_filter: Buffer | null;
}

/** What is assumed until the machine was asked. */
export const STRICTEST: Walls = {
  has_users: false,
  has_prelude: false,
  user_namespace: USER_NAMESPACE,
  seccomp_filter: null,
};

/**
 * Sets of walls from the strictest to the weakest: some hosts forbid user namespaces, to all or to everybody but root;
 * some kernels have no filters.
 */
export function candidates(): Walls[] {
  const filter = seccompFilter(process.arch);
  return [...new Set([filter, null])].flatMap((seccomp_filter) => [
    ...(isRoot()
      ? [{ has_users: true, has_prelude: true, user_namespace: USER_NAMESPACE, seccomp_filter }]
      : []),
    ...(isRoot() ? [true, false] : [false]).flatMap((has_prelude) =>
      [USER_NAMESPACE, []].map((user_namespace) => ({
        has_users: false,
        has_prelude,
        user_namespace,
        seccomp_filter,
      })),
    ),
  ]);
}

/** A phrase for each wall that is missing. `why`: the reason why stricter walls do not work. */
export function missingWalls(walls: Walls, why: string | null): string[] {
  const { has_users, has_prelude, user_namespace, seccomp_filter } = walls;
  const missing: [boolean, string][] = [
    [isRoot() && !has_users, `sandboxes have no user of their own: ${firstLine(why)}`],
    [isRoot() && !has_prelude, "the host's device nodes are not read-only in sandboxes"],
    [user_namespace.length === 0, 'sandboxes have no user namespace'],
    [seccomp_filter === null, 'system calls of sandboxes are not filtered'],
  ];
  return missing.flatMap(([is_missing, phrase]) => (is_missing ? [phrase] : []));
}

function firstLine(text: string | null): string {
  return text?.split('\n')[0] ?? 'it has not been tried';
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
