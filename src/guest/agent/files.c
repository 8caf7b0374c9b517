/* Small files and the clock, for the runner. Never leaves a file half written under its name. */
#define _GNU_SOURCE
#include "runner.h"
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void nap(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

/* Whole or not at all; waits where the file system is full. */
void write_file(const char *name, const char *format, ...) {
  char text[1024], temporary[64];
  va_list list;
  va_start(list, format);
  int length = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  snprintf(temporary, sizeof temporary, ".%s", name);
  for (;; nap(100)) {
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) continue;
    ssize_t written = write(fd, text, length);
    close(fd);
    if (written == length && rename(temporary, name) == 0) return;
  }
}

int write_number(const char *directory, const char *name, const char *text) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int failed = write(fd, text, strlen(text)) < 0;
  close(fd);
  return failed ? -1 : 0;
}

/* The number behind `key` in a cgroup file, or the file's own where key is NULL; -1 unknown. */
long long cgroup_number(const char *name, const char *key) {
  char path[PATH_MAX], text[4096];
  if (!*cgroup) return -1;
  snprintf(path, sizeof path, "%s/%s", cgroup, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return -1;
  text[n] = 0;
  if (!key) return text[0] == 'm' ? -1 : atoll(text);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ' ')
      return atoll(line + strlen(key));
  return -1;
}
