/*
 * The init of a sandbox whose root persists: `init PID` reaps whatever ends, passes signals on to the child PID, and ends
 * when that does, with its exit code. It needs nothing of the root that it runs on, which is the sandbox's: no C library.
 * `init-x64` and `init-arm64` are made from it, as `../native/compile.ts` says.
 */
#include "freestanding.h"

enum { SIG_SETMASK = 2, SIGCHLD = 17, WNOHANG = 1 };

#if defined(__x86_64__)
enum { RT_SIGPROCMASK = 14, WAIT4 = 61, KILL = 62, RT_SIGTIMEDWAIT = 128, EXIT_GROUP = 231 };
#elif defined(__aarch64__)
enum { EXIT_GROUP = 94, KILL = 129, RT_SIGPROCMASK = 135, RT_SIGTIMEDWAIT = 137, WAIT4 = 260 };
#endif

_Noreturn void program(char **stack) {
  const unsigned long every_signal = -1UL;
  int status, child = 0;
  for (const char *digit = stack[2]; *digit >= '0'; digit++) child = child * 10 + (*digit - '0');
  /* From here on signals wait until they are asked for, SIGCHLD as well: none is missed between two looks. */
  call(RT_SIGPROCMASK, SIG_SETMASK, (long)&every_signal, 0, sizeof every_signal);
  for (;;) {
    long ended;
    while ((ended = call(WAIT4, -1, (long)&status, WNOHANG, 0)) > 0)
      if (ended == child) call(EXIT_GROUP, status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff, 0, 0, 0);
    if (ended < 0) call(EXIT_GROUP, 1, 0, 0, 0); /* nothing is left to wait for */
    for (long signal = 0; signal != SIGCHLD;) {
      signal = call(RT_SIGTIMEDWAIT, (long)&every_signal, 0, 0, sizeof every_signal);
      if (signal > 0 && signal != SIGCHLD) call(KILL, child, signal, 0, 0);
    }
  }
}
