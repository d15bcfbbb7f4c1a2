/* Makes every sync of the process that loads it take SLOW_SYNC_US longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int slow_sync(int file, const char *name) {
  int (*sync_file)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
  const char *delay_us = getenv("SLOW_SYNC_US");
  if (delay_us) usleep(atoi(delay_us));
  return sync_file(file);
}

int fsync(int file) { return slow_sync(file, "fsync"); }
int fdatasync(int file) { return slow_sync(file, "fdatasync"); }
