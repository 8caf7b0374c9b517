/* Reads DIR/spec, whose fields runner.c names. The guest part wrote it: it is trusted. */
#define _GNU_SOURCE
#include "runner.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *cgroup, *wake, *user, *cwd, **arguments, **environment;
long timeout_ms;
int stdin_open;

static char *read_spec(size_t *size) {
  struct stat s;
  int fd = open("spec", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &s) < 0) exit(1);
  char *text = malloc(s.st_size + 1);
  size_t at = 0;
  while (at < (size_t)s.st_size) {
    ssize_t n = read(fd, text + at, s.st_size - at);
    if (n <= 0) exit(1);
    at += n;
  }
  close(fd);
  text[at] = 0;
  *size = at;
  return text;
}

static char *field(char **at) {
  char *start = *at;
  *at += strlen(start) + 1;
  return start;
}

static char **list(char **at) {
  int count = atoi(field(at));
  char **items = calloc(count + 1, sizeof *items);
  for (int i = 0; i < count; i++) items[i] = field(at);
  return items;
}

void parse_spec(void) {
  size_t size;
  char *at = read_spec(&size);
  cgroup = field(&at), wake = field(&at), user = field(&at), cwd = field(&at);
  timeout_ms = atol(field(&at));
  stdin_open = *field(&at) == '1';
  arguments = list(&at), environment = list(&at);
}
