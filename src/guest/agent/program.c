/* The child's way to become the command's program: cgroup, user, directory, environment, exec. */
#define _GNU_SOURCE
#include "runner.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

__attribute__((noreturn)) static void fail(int report, const char *reason) {
  struct failure f = {.error = errno};
  snprintf(f.reason, sizeof f.reason, "%s", reason);
  if (write(report, &f, sizeof f) < 0) _exit(126);
  _exit(127);
}

static const char *home = "/", *shell = "/bin/sh";

/* Reads the files themselves: a static binary cannot load the guest's own name services. */
static struct passwd *find_user(void) {
  FILE *file = fopen("/etc/passwd", "re");
  struct passwd *entry;
  while (file && (entry = fgetpwent(file)))
    if (!strcmp(entry->pw_name, user)) return entry;
  return NULL;
}

static void join_groups(int report, gid_t own) {
  gid_t groups[256] = {own};
  size_t count = 1;
  FILE *file = fopen("/etc/group", "re");
  for (struct group *entry; file && (entry = fgetgrent(file));)
    for (char **member = entry->gr_mem; *member; member++)
      if (!strcmp(*member, user) && count < 256) groups[count++] = entry->gr_gid;
  if (setgroups(count, groups) < 0) fail(report, "bad_user");
}

static void become_user(int report) {
  struct passwd *entry = find_user();
  if (!entry) errno = ENOENT, fail(report, "bad_user");
  home = entry->pw_dir, shell = entry->pw_shell;
  if (geteuid() == 0) {
    join_groups(report, entry->pw_gid);
    if (setgid(entry->pw_gid) || setuid(entry->pw_uid)) fail(report, "bad_user");
  } else if (entry->pw_uid != geteuid()) {
    errno = EPERM;
    fail(report, "bad_user");
  }
}

static void set_environment(void) {
  clearenv();
  setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
  setenv("HOME", home, 1), setenv("USER", user, 1), setenv("LOGNAME", user, 1);
  setenv("SHELL", shell, 1), setenv("LANG", "C.UTF-8", 1);
  for (char **entry = environment; *entry; entry++) putenv(*entry);
}

void run_program(int report, int in, int out, int err) {
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  write_number("/proc/self", "oom_score_adj", "0");
  /* The guest part's own limit is far higher than what programs expect. */
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 1024)
    files.rlim_cur = 1024, setrlimit(RLIMIT_NOFILE, &files);
  if (*cgroup) write_number(cgroup, "cgroup.procs", "0");
  become_user(report);
  if (chdir(*cwd ? cwd : home) < 0) {
    if (*cwd || chdir("/") < 0) fail(report, "bad_cwd");
  }
  set_environment();
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) fail(report, "other");
  execvp(arguments[0], arguments);
  switch (errno) {
    case ENOENT: case ENOTDIR: fail(report, "not_found");
    case EACCES: case ENOEXEC: case EISDIR: case EPERM: fail(report, "not_executable");
    case E2BIG: fail(report, "too_long");
    case ENOMEM: case EAGAIN: fail(report, "no_resources");
    default: fail(report, "other");
  }
}
