/*
 * Disk faults for the files of one folder, preloaded into a program. The file named by FAULT_CONTROL says what goes
 * wrong now, one rule a line, "<call> <fault> [number]"; without a rule everything works.
 *
 *   sync  error       fails with EIO                 write error   fails with EIO
 *   sync  nothing     says it synced and did not     write full    fails with ENOSPC
 *   sync  slow N      takes N ms more                write short   writes half and says so
 *   any   hang N      the Nth call of the outbox's writer from then on, and all after it, wait until the rule is gone
 *                                                    write torn    writes half, then the program is gone
 *                                                    write flip    changes one bit in the middle
 *
 * FAULT_FOLDER: the folder; only files whose name begins with "outbox" are touched.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct rule {
  char fault[16];
  int number;
};

static int is_ours(int file) {
  char link[40], path[4096], wanted[4096];
  const char *folder = getenv("FAULT_FOLDER");
  if (!folder) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  snprintf(wanted, sizeof wanted, "%s/outbox", folder);
  return strncmp(path, wanted, strlen(wanted)) == 0;
}

static int find_rule(const char *call, struct rule *rule) {
  const char *control = getenv("FAULT_CONTROL");
  FILE *file = control ? fopen(control, "re") : NULL;
  if (!file) return 0;
  char line[128], name[16];
  int is_found = 0;
  while (!is_found && fgets(line, sizeof line, file)) {
    rule->number = 0;
    is_found = sscanf(line, "%15s %15s %d", name, rule->fault, &rule->number) >= 2 && strcmp(name, call) == 0;
  }
  fclose(file);
  return is_found;
}

static int is_our_path(const char *path) {
  const char *folder = getenv("FAULT_FOLDER");
  return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static atomic_int calls;

/* Waits where it is told to hang. */
static void hang(void) {
  struct rule rule;
  if (!find_rule("any", &rule)) {
    calls = 0;
    return;
  }
  if (++calls < rule.number) return;
  struct timespec pause = {0, 5 * 1000000L};
  while (find_rule("any", &rule)) nanosleep(&pause, NULL);
}

static int synced(int file, const char *name) {
  int (*next)(int) = dlsym(RTLD_NEXT, name);
  struct rule rule;
  if (!is_ours(file)) return next(file);
  hang();
  if (!find_rule("sync", &rule)) return next(file);
  if (strcmp(rule.fault, "error") == 0) {
    errno = EIO;
    return -1;
  }
  if (strcmp(rule.fault, "nothing") == 0) return 0;
  struct timespec pause = {rule.number / 1000, rule.number % 1000 * 1000000L};
  nanosleep(&pause, NULL);
  return next(file);
}

typedef ssize_t (*writer)(int, const void *, size_t, off_t);

static ssize_t written(int file, const void *bytes, size_t size, off_t offset, const char *name) {
  writer next = dlsym(RTLD_NEXT, name);
  struct rule rule;
  if (!is_ours(file)) return next(file, bytes, size, offset);
  hang();
  if (!find_rule("write", &rule)) return next(file, bytes, size, offset);
  if (strcmp(rule.fault, "error") == 0 || strcmp(rule.fault, "full") == 0) {
    errno = rule.fault[0] == 'e' ? EIO : ENOSPC;
    return -1;
  }
  if (size < 64) return next(file, bytes, size, offset);
  if (strcmp(rule.fault, "short") == 0) return next(file, bytes, size / 2, offset);
  if (strcmp(rule.fault, "torn") == 0) {
    next(file, bytes, size / 2, offset);
    _exit(137);
  }
  char *changed = malloc(size);
  memcpy(changed, bytes, size);
  changed[size / 2] ^= 1;
  ssize_t count = next(file, changed, size, offset);
  free(changed);
  return count;
}

int fsync(int file) { return synced(file, "fsync"); }
int fdatasync(int file) { return synced(file, "fdatasync"); }
ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
  return written(file, bytes, size, offset, "pwrite");
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off_t offset) {
  return written(file, bytes, size, offset, "pwrite64");
}

int ftruncate(int file, off_t size) {
  int (*next)(int, off_t) = dlsym(RTLD_NEXT, "ftruncate");
  if (is_ours(file)) hang();
  return next(file, size);
}
int ftruncate64(int file, off_t size) { return ftruncate(file, size); }
int unlink(const char *path) {
  int (*next)(const char *) = dlsym(RTLD_NEXT, "unlink");
  if (is_our_path(path)) hang();
  return next(path);
}
int rename(const char *from, const char *to) {
  int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  if (is_our_path(to)) hang();
  return next(from, to);
}
int mkdir(const char *path, mode_t mode) {
  int (*next)(const char *, mode_t) = dlsym(RTLD_NEXT, "mkdir");
  if (is_our_path(path)) hang();
  return next(path, mode);
}
int close(int file) {
  int (*next)(int) = dlsym(RTLD_NEXT, "close");
  if (is_ours(file)) hang();
  return next(file);
}
