/*
 * Touches the file system of a sandbox in a process of its own, which may hang there for ever: the daemon waits for nothing
 * of it, and kills it. `launcher-x64` and `launcher-arm64` are made from it, as `.build/native/compile.ts` says.
 *
 *   launcher run|terminal NICE ACCOUNT CWD FILE ARGUMENT...   becomes the program FILE, with these arguments from its own name on
 *   launcher read PATH MAX                               copies at most MAX bytes of a regular file to stdout
 *   launcher look NAME                                   answers questions about processes until stdin ends
 *
 * `run`: NICE is the program's nice value and 20. ACCOUNT is UID:GID, or - for the account that it has. A FILE without a slash is searched in PATH, or in the default
 * path. It writes records of two numbers to descriptor 3: when it began, in ticks after boot, as their low and high half (0
 * if that is unknown); and then, if it fails, the step and the system's error. That descriptor closes once the program runs.
 * `terminal` also makes stdin the controlling terminal. The process's name says what it waits for, should it hang: `cwd`,
 * `path N` (the folder of PATH, from 0) or `program`.
 *
 * `read` ends with the number of the system's error.
 *
 * `look`: a process can make whoever reads of it in /proc wait for ever. A question is a number, four times the pid and a
 * kind: 0 for its line of `stat`, 1 for the value of NAME in the environment that it was started with, 2 for its pid
 * namespace. The answer is its length and its bytes; the length is -1 if it cannot be read. The process's name is the question
 * that it works on. It ends with the number of the system's error if nothing can be read now.
 */
#include "freestanding.h"

#if defined(__x86_64__)
enum { READ = 0, WRITE = 1, CLOSE = 3, FSTAT = 5, IOCTL = 16, EXECVE = 59, FCNTL = 72, CHDIR = 80, SETUID = 105 };
enum { SETGID = 106, GETGROUPS = 115, SETGROUPS = 116, PRCTL = 157, EXIT_GROUP = 231, OPENAT = 257 };
enum { SETPRIORITY = 141, NEWFSTATAT = 262, READLINKAT = 267, FACCESSAT = 269, MODE_AT = 24 };
#elif defined(__aarch64__)
enum { FCNTL = 25, IOCTL = 29, FACCESSAT = 48, CHDIR = 49, OPENAT = 56, CLOSE = 57, READ = 63, WRITE = 64 };
enum { READLINKAT = 78, NEWFSTATAT = 79, FSTAT = 80, EXIT_GROUP = 94, SETGID = 144, SETUID = 146, GETGROUPS = 158, SETGROUPS = 159 };
enum { SETPRIORITY = 140, PRCTL = 167, EXECVE = 221, MODE_AT = 16 };
#endif

enum { ENOENT = 2, ENOEXEC = 8, EBADF = 9, ENOMEM = 12, EACCES = 13, ENOTDIR = 20, EINVAL = 22, ENFILE = 23, EMFILE = 24 };
enum { HERE = -100, O_RDWR = 02, O_NOCTTY = 0400, O_NONBLOCK = 04000, O_CLOEXEC = 02000000 };
enum { F_GETFD = 1, F_SETFD = 2, F_SETFL = 4, FD_CLOEXEC = 1, TIOCSCTTY = 0x540e, X_OK = 1, PR_SET_NAME = 15 };
enum { S_IFMT = 0170000, S_IFDIR = 0040000, S_IFREG = 0100000, STAT_BYTES = 256 };
enum { PATH_BYTES = 4096, HEAD_BYTES = 256, COPY_BYTES = 4096, STATUS = 3, START_FIELD = 22 };
enum { STAT, VARIABLE, NAMESPACE, ANSWERS_BYTES = 65536, ANSWER_BYTES = 4096, VALUE_BYTES = 256 };

/* As `launcher.ts` beside the starts of processes reads them. */
enum step { STDIN = 1, CWD, USER, TERMINAL, MISSING, UNUSABLE, EXEC };
enum kind { PROGRAM, DIRECTORY, NOTHING, REFUSED };

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
static char path[PATH_BYTES];

static _Noreturn void end(long code) {
  for (;;) call(EXIT_GROUP, code, 0, 0, 0);
}

static void report(unsigned long first, unsigned long second) {
  volatile unsigned record[2];
  record[0] = (unsigned)first;
  record[1] = (unsigned)second;
  call(WRITE, STATUS, (long)record, sizeof record, 0);
}

static _Noreturn void fail(enum step step, long result) {
  report(step, (unsigned long)-result);
  end(127);
}

static void say(const char *name) {
  call(PRCTL, PR_SET_NAME, (long)name, 0, 0);
}

static int has_slash(const char *text) {
  while (*text && *text != '/') text++;
  return *text == '/';
}

/* The number that the text begins with; moves behind it and the character that ends it. */
static unsigned long number(const char **text) {
  unsigned long value = 0;
  while (**text >= '0' && **text <= '9') value = value * 10 + (unsigned long)(*(*text)++ - '0');
  if (**text) (*text)++;
  return value;
}

static unsigned mode(const char *stat) {
  return *(const unsigned *)(stat + MODE_AT) & S_IFMT;
}

static enum kind kind_of(const char *file) {
  char stat[STAT_BYTES] __attribute__((aligned(8)));
  long result = call(NEWFSTATAT, HERE, (long)file, (long)stat, 0);
  if (result < 0) return result == -EACCES ? REFUSED : NOTHING;
  if (mode(stat) == S_IFDIR) return DIRECTORY;
  return call(FACCESSAT, HERE, (long)file, X_OK, 0) < 0 ? REFUSED : PROGRAM;
}

/* Puts the text, up to `stop`, and a slash behind it; gives where that ends, null if it is too long. */
static char *put_folder(char *to, const char *text, char stop) {
  if (!to) return 0;
  for (; *text && *text != stop; text++) {
    if (to == path + PATH_BYTES - 1) return 0;
    *to++ = *text;
  }
  if (to > path && to[-1] != '/') *to++ = '/';
  return to;
}

static void say_folder(unsigned index) {
  char name[] = {'p', 'a', 't', 'h', ' ', '0', '0', '0', 0};
  unsigned at;
  for (at = 7; at > 4; at--, index /= 10) name[at] = (char)('0' + index % 10);
  say(name);
}

/* Searches a bare name, as shells do; the path that is found is absolute. */
static void search(const char *name, const char *cwd, char **environment) {
  const char *entry = default_path;
  unsigned index = 0;
  int is_refused = 0;
  for (; *environment; environment++) {
    const char *each = *environment;
    if (each[0] == 'P' && each[1] == 'A' && each[2] == 'T' && each[3] == 'H' && each[4] == '=') entry = each + 5;
  }
  for (;;) {
    char *to = path;
    const char *letter = name;
    if (*entry != '/') to = put_folder(to, cwd, 0);
    if (*entry == '.' && (!entry[1] || entry[1] == ':')) entry++;
    to = put_folder(to, entry, ':');
    while (to && *letter && to < path + PATH_BYTES) *to++ = *letter++;
    if (to && to < path + PATH_BYTES) {
      enum kind kind;
      *to = 0;
      say_folder(index);
      kind = kind_of(path);
      if (kind == PROGRAM) return;
      if (kind == REFUSED) is_refused = 1; /* a directory of that name is skipped */
    }
    index++;
    while (*entry && *entry != ':') entry++;
    if (!*entry++) fail(is_refused ? UNUSABLE : MISSING, is_refused ? -EACCES : -ENOENT);
  }
}

/* Whether a shell may run what the kernel did not know: not the machine code of another computer, nor other binary data. */
static int is_script(const char *file) {
  char head[HEAD_BYTES];
  long fd = call(OPENAT, HERE, (long)file, O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0), length, index;
  if (fd < 0) return 1; /* the shell says what it may not read */
  length = call(READ, fd, (long)head, sizeof head, 0);
  call(CLOSE, fd, 0, 0, 0);
  for (index = 0; index < length && head[index] != '\n'; index++)
    if (!head[index]) return 0;
  return !(length >= 4 && head[0] == 0x7f && head[1] == 'E' && head[2] == 'L' && head[3] == 'F');
}

static void change_account(const char *account) {
  unsigned long uid = number(&account), gid = number(&account);
  long result = call(SETGROUPS, 0, 0, 0, 0);
  if (result < 0 && call(GETGROUPS, 0, 0, 0, 0) == 0) result = 0; /* forbidden in some namespaces, and nothing to do */
  if (result == 0) result = call(SETGID, (long)gid, 0, 0, 0);
  if (result == 0) result = call(SETUID, (long)uid, 0, 0, 0);
  if (result < 0) fail(USER, result);
}

/* When this process began, in ticks after boot; 0 if /proc does not say. A program keeps it that it becomes. */
static unsigned long began(void) {
  char line[COPY_BYTES];
  const char *text = line;
  long fd = call(OPENAT, HERE, (long)"/proc/self/stat", O_CLOEXEC, 0), length, index;
  int field = 2;
  if (fd < 0) return 0;
  length = call(READ, fd, (long)line, sizeof line - 1, 0);
  call(CLOSE, fd, 0, 0, 0);
  if (length <= 0) return 0;
  line[length] = 0;
  /* The second field, the name, may hold anything but ends with the last parenthesis. */
  for (index = 0; index < length; index++)
    if (line[index] == ')') text = line + index;
  for (; *text && field < START_FIELD; text++) field += *text == ' ';
  return number(&text);
}

/* `argv`: mode, nice value, account, cwd, file, and the program's own from its name on. */
static _Noreturn void run(char **argv, char **environment) {
  static char shell[] = "/bin/sh";
  const char *nice = argv[1], *account = argv[2], *cwd = argv[3];
  char *file = argv[4];
  long result, entered;
  unsigned long ticks = began();
  call(FCNTL, STATUS, F_SETFD, FD_CLOEXEC, 0);
  report(ticks, ticks >> 32);
  if (call(FCNTL, 0, F_GETFD, 0, 0) == -EBADF) {
    result = call(OPENAT, HERE, (long)"/dev/null", O_RDWR, 0);
    if (result < 0) fail(STDIN, result);
  }
  call(SETPRIORITY, 0, 0, (long)number(&nice) - 20, 0); /* refused only where there is nothing to lower */
  say("cwd");
  entered = call(CHDIR, (long)cwd, 0, 0, 0);
  if (*account != '-') {
    change_account(account);
    /* A directory may be open to the account alone: so are many that a user has mounted. */
    if (entered == -EACCES) entered = call(CHDIR, (long)cwd, 0, 0, 0);
  }
  if (entered < 0) {
    enum kind kind = kind_of(cwd);
    int is_closed = entered == -EACCES && kind == DIRECTORY, is_other = entered == -ENOTDIR && kind != NOTHING;
    fail(CWD, is_closed || is_other ? entered : -ENOENT);
  }
  if (argv[0][0] == 't') {
    result = call(IOCTL, 0, TIOCSCTTY, 0, 0);
    if (result < 0) fail(TERMINAL, result);
    call(FCNTL, 0, F_SETFL, O_RDWR, 0); /* it comes as one that does not wait */
  }
  if (!has_slash(file)) {
    search(file, cwd, environment);
    file = path;
  }
  say("program");
  result = call(EXECVE, (long)file, (long)(argv + 5), (long)environment, 0);
  if (result == -ENOEXEC) {
    if (!is_script(file)) fail(UNUSABLE, result);
    argv[4] = shell;
    argv[5] = file;
    result = call(EXECVE, (long)shell, (long)(argv + 4), (long)environment, 0);
  } else {
    enum kind kind = kind_of(file);
    if (kind == NOTHING) fail(MISSING, result);
    if (kind != PROGRAM) fail(UNUSABLE, result);
  }
  fail(EXEC, result);
}

static _Noreturn void copy(const char *file, const char *max) {
  char stat[STAT_BYTES] __attribute__((aligned(8))), buffer[COPY_BYTES];
  unsigned long left = number(&max);
  long fd = call(OPENAT, HERE, (long)file, O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0), length;
  if (fd < 0) end(-fd);
  length = call(FSTAT, fd, (long)stat, 0, 0);
  if (length < 0) end(-length);
  if (mode(stat) != S_IFREG) end(EINVAL);
  while (left > 0) {
    long written = 0;
    length = call(READ, fd, (long)buffer, (long)(left < sizeof buffer ? left : sizeof buffer), 0);
    if (length < 0) end(-length);
    if (length == 0) break;
    left -= (unsigned long)length;
    while (written < length) {
      long result = call(WRITE, 1, (long)buffer + written, length - written, 0);
      if (result < 0) end(-result);
      written += result;
    }
  }
  end(0);
}

static char answers[ANSWERS_BYTES];
static long answers_length;

static void send_answers(void) {
  long written = 0;
  while (written < answers_length) {
    long result = call(WRITE, 1, (long)answers + written, answers_length - written, 0);
    if (result < 0) end(-result);
    written += result;
  }
  answers_length = 0;
}

static void answer(const char *bytes, long length) {
  int record = length < 0 ? -1 : (int)length;
  const char *head = (const char *)&record;
  long index;
  if (answers_length + (long)sizeof record + length > ANSWERS_BYTES) send_answers();
  for (index = 0; index < (long)sizeof record; index++) answers[answers_length++] = head[index];
  for (index = 0; index < length; index++) answers[answers_length++] = bytes[index];
}

/* An error that says nothing about the process ends it. */
static long known(long result) {
  if (result == -EMFILE || result == -ENFILE || result == -ENOMEM) end(-result);
  return result;
}

/* The value of a variable, at most VALUE_BYTES of it; -1 if the process has none. */
static long value_of(long fd, const char *name, char *value) {
  static char block[ANSWERS_BYTES];
  const char *at = name; /* where the present entry may go on; null if it is another one */
  int is_found = 0;
  long found = 0, length, index;
  while ((length = call(READ, fd, (long)block, sizeof block, 0)) > 0)
    for (index = 0; index < length; index++) {
      char letter = block[index];
      if (is_found) {
        if (!letter || found == VALUE_BYTES) return found;
        value[found++] = letter;
      } else if (!letter) at = name;
      else if (at && !*at && letter == '=') is_found = 1;
      else at = at && *at == letter ? at + 1 : 0;
    }
  return is_found ? found : -1;
}

/* The digits of a number before `to`; gives where they begin. */
static char *digits(char *to, unsigned number) {
  do *--to = (char)('0' + number % 10);
  while (number /= 10);
  return to;
}

static void look_at(unsigned question, const char *name) {
  static const char *const places[] = {"/stat", "/environ", "/ns/pid"};
  static const char root[] = "/proc/";
  char file[64], said[16], found[ANSWER_BYTES], *to = file + 32, *from;
  const char *place = places[question % 4];
  long index, length, fd;
  said[15] = 0;
  say(digits(said + 15, question));
  from = digits(to, question / 4);
  for (index = sizeof root - 2; index >= 0; index--) *--from = root[index];
  do *to++ = *place;
  while (*place++);
  if (question % 4 == NAMESPACE) {
    answer(found, known(call(READLINKAT, HERE, (long)from, (long)found, sizeof found)));
    return;
  }
  fd = known(call(OPENAT, HERE, (long)from, O_CLOEXEC, 0));
  if (fd < 0) {
    answer(found, -1);
    return;
  }
  if (question % 4 == STAT) length = known(call(READ, fd, (long)found, sizeof found, 0));
  else length = value_of(fd, name, found);
  call(CLOSE, fd, 0, 0, 0);
  answer(found, length);
}

static _Noreturn void look(const char *name) {
  static unsigned questions[COPY_BYTES];
  long length, kept = 0, index;
  while ((length = call(READ, 0, (long)questions + kept, sizeof questions - kept, 0)) > 0) {
    length += kept;
    kept = length % (long)sizeof *questions;
    for (index = 0; index < length / (long)sizeof *questions; index++)
      if (questions[index] % 4 <= NAMESPACE) look_at(questions[index], name);
    for (length -= kept, index = 0; index < kept; index++) ((char *)questions)[index] = ((char *)questions)[length + index];
    send_answers();
  }
  end(0);
}

_Noreturn void program(char **stack) {
  long count = (long)stack[0];
  char **argv = stack + 1, **environment = argv + count + 1;
  if (count == 4 && argv[1][0] == 'r' && argv[1][1] == 'e') copy(argv[2], argv[3]);
  if (count == 3 && argv[1][0] == 'l') look(argv[2]);
  if (count >= 7) run(argv + 1, environment);
  end(EINVAL);
}
