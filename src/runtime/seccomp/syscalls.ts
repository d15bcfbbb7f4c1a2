/** The numbers of a system call; null where the machine has no such call. Source: asm/unistd_64.h, asm-generic/unistd.h. */
export interface SyscallNumbers {
  x64: number;
  arm64: number | null;
}

/** The last system call that programs may know of, on both machines: `removexattrat` of Linux 6.13. */
export const LAST_SYSCALL = 466;

/** System calls whose arguments decide, or that get an answer of their own. */
export const CHECKED_SYSCALLS = {
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
  personality: { x64: 135, arm64: 92 },
  prctl: { x64: 157, arm64: 167 },
  seccomp: { x64: 317, arm64: 277 },
  setsockopt: { x64: 54, arm64: 208 },
  socket: { x64: 41, arm64: 198 },
  unshare: { x64: 272, arm64: 97 },
} as const satisfies Record<string, SyscallNumbers>;

/**
 * System calls that no process in a sandbox may make, as a container without capabilities may not: they change the
 * machine (modules, clocks, mounts, swap), look into it (tracing, keys, handles of files), or are a large part of the
 * kernel that few programs need (io_uring, userfaultfd). Source: the default profiles of Docker and Podman.
 */
export const DENIED_SYSCALLS: Record<string, SyscallNumbers> = {
  acct: { x64: 163, arm64: 89 },
  add_key: { x64: 248, arm64: 217 },
  bpf: { x64: 321, arm64: 280 },
  chroot: { x64: 161, arm64: 51 },
  clock_settime: { x64: 227, arm64: 112 },
  create_module: { x64: 174, arm64: null },
  delete_module: { x64: 176, arm64: 106 },
  fanotify_init: { x64: 300, arm64: 262 },
  finit_module: { x64: 313, arm64: 273 },
  fsconfig: { x64: 431, arm64: 431 },
  fsmount: { x64: 432, arm64: 432 },
  fsopen: { x64: 430, arm64: 430 },
  fspick: { x64: 433, arm64: 433 },
  get_kernel_syms: { x64: 177, arm64: null },
  get_mempolicy: { x64: 239, arm64: 236 },
  init_module: { x64: 175, arm64: 105 },
  // Contexts for asynchronous I/O are counted for the whole machine.
  io_setup: { x64: 206, arm64: 0 },
  io_uring_enter: { x64: 426, arm64: 426 },
  io_uring_register: { x64: 427, arm64: 427 },
  io_uring_setup: { x64: 425, arm64: 425 },
  ioperm: { x64: 173, arm64: null },
  iopl: { x64: 172, arm64: null },
  kcmp: { x64: 312, arm64: 272 },
  kexec_file_load: { x64: 320, arm64: 294 },
  kexec_load: { x64: 246, arm64: 104 },
  keyctl: { x64: 250, arm64: 219 },
  listmount: { x64: 458, arm64: 458 },
  lookup_dcookie: { x64: 212, arm64: 18 },
  lsm_set_self_attr: { x64: 460, arm64: 460 },
  mbind: { x64: 237, arm64: 235 },
  migrate_pages: { x64: 256, arm64: 238 },
  mount: { x64: 165, arm64: 40 },
  mount_setattr: { x64: 442, arm64: 442 },
  move_mount: { x64: 429, arm64: 429 },
  move_pages: { x64: 279, arm64: 239 },
  nfsservctl: { x64: 180, arm64: 42 },
  open_by_handle_at: { x64: 304, arm64: 265 },
  open_tree: { x64: 428, arm64: 428 },
  perf_event_open: { x64: 298, arm64: 241 },
  pidfd_getfd: { x64: 438, arm64: 438 },
  pivot_root: { x64: 155, arm64: 41 },
  process_madvise: { x64: 440, arm64: 440 },
  query_module: { x64: 178, arm64: null },
  quotactl: { x64: 179, arm64: 60 },
  quotactl_fd: { x64: 443, arm64: 443 },
  reboot: { x64: 169, arm64: 142 },
  request_key: { x64: 249, arm64: 218 },
  set_mempolicy: { x64: 238, arm64: 237 },
  set_mempolicy_home_node: { x64: 450, arm64: 450 },
  setdomainname: { x64: 171, arm64: 162 },
  sethostname: { x64: 170, arm64: 161 },
  setns: { x64: 308, arm64: 268 },
  settimeofday: { x64: 164, arm64: 170 },
  statmount: { x64: 457, arm64: 457 },
  swapoff: { x64: 168, arm64: 225 },
  swapon: { x64: 167, arm64: 224 },
  _sysctl: { x64: 156, arm64: null },
  sysfs: { x64: 139, arm64: null },
  syslog: { x64: 103, arm64: 116 },
  umount2: { x64: 166, arm64: 39 },
  uselib: { x64: 134, arm64: null },
  userfaultfd: { x64: 323, arm64: 282 },
  ustat: { x64: 136, arm64: null },
  vhangup: { x64: 153, arm64: 58 },
};
