/** Opens a name without any right to its content, and without any effect on it. From <fcntl.h>; Node does not name it. */
export const O_PATH = 0o10000000;
