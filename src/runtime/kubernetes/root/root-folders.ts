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
