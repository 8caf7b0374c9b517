/*
 * Runs one command of a sandbox and outlives the guest part, so that a restart of the latter loses
 * nothing: it claims the command, starts it in its own cgroup, keeps its output in bounded segment
 * files, ends it when its time has passed, and writes how it ended. Never runs a command twice.
 *
 * usage: holdfast-run DIR       DIR/spec: fields that each end with a NUL byte:
 *   cgroup directory or "", wake FIFO, user, working directory or "", timeout in ms or "0",
 *   "1" when stdin stays open, argc, arguments, envc, NAME=VALUE...
 * Stdin comes from DIR/stdin, to which the guest part appends, and ends with DIR/stdin.eof; SIGUSR1
 * says that there is more. What was passed on is punched out, so that the file stays small.
 * Writes DIR/claim, DIR/started ("PID MS"), DIR/spool/OFFSET (16 hex digits: the bytes of output before
 * it; frames: stream u8, time ms u64, length u32, little-endian, then bytes), DIR/ended (one line of NAME=VALUE words).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SEGMENT_MAX = 1 << 20, SEGMENTS_MAX = 8, PIECE_MAX = 1 << 18, KILL_AFTER_MS = 5000, WAKE_MS = 5, DRAIN_MAX = 4096 };

static char *cgroup, *wake, *user, *cwd;
static long timeout_ms;
static int stdin_open;
static char **arguments, **environment;
static uint64_t output_bytes;
static int stdin_file = -1, stdin_pipe = -1;
static off_t stdin_passed;
static int64_t woken_at;
static int segment = -1;
static off_t segment_size;

static int64_t now_ms(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void nap(long ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

/* Tells the guest part to look; where nobody listens, it looks when it starts. */
static void wake_guest_part(void) {
  static int fd = -1;
  woken_at = now_ms(CLOCK_MONOTONIC);
  if (fd < 0) fd = open(wake, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  char line[PATH_MAX];
  if (getcwd(line, sizeof line - 1)) {
    char *name = strrchr(line, '/') + 1;
    size_t length = strlen(name);
    name[length] = '\n';
    /* Full: it is awake already. No reader: another one will open another FIFO. */
    if (write(fd, name, length + 1) < 0 && errno != EAGAIN) close(fd), fd = -1;
  }
}

/* Whole or not at all; waits where the file system is full. */
static void write_file(const char *name, const char *format, ...) {
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

static void parse_spec(void) {
  size_t size;
  char *at = read_spec(&size);
  cgroup = field(&at), wake = field(&at), user = field(&at), cwd = field(&at);
  timeout_ms = atol(field(&at));
  stdin_open = *field(&at) == '1';
  arguments = list(&at), environment = list(&at);
}

static int write_number(const char *directory, const char *name, const char *text) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int failed = write(fd, text, strlen(text)) < 0;
  close(fd);
  return failed ? -1 : 0;
}

/* The number behind `key` in a cgroup file, or the file's own where key is NULL; -1 unknown. */
static long long cgroup_number(const char *name, const char *key) {
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

struct failure { char reason[24]; int error; };

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

static void run_program(int report, int in, int out, int err) {
  sigset_t none;
  sigemptyset(&none);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  if (*cgroup && write_number(cgroup, "cgroup.procs", "0") < 0) errno = 0;
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

static int segments_waiting(void) {
  DIR *directory = opendir("spool");
  int count = 0;
  if (!directory) return 0;
  for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

static void open_segment(void) {
  char name[32];
  if (segment >= 0) close(segment);
  segment = -1;
  /* The program waits on its full pipe until the host has taken some. */
  while (segments_waiting() >= SEGMENTS_MAX) nap(5);
  snprintf(name, sizeof name, "spool/%016llx", (unsigned long long)output_bytes);
  while ((segment = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) < 0) nap(50);
  segment_size = 0;
}

static void put(const unsigned char *bytes, size_t length) {
  off_t keep = segment_size;
  while (length > 0) {
    ssize_t n = write(segment, bytes, length);
    if (n < 0) nap(50); /* no room: acknowledged segments will make some */
    else bytes += n, length -= n, keep += n;
  }
  segment_size = keep;
}

/* One read of one pipe; 0 = nothing there now, -1 = its end. */
static int take(int fd, int stream, int keep) {
  static unsigned char buffer[13 + PIECE_MAX];
  ssize_t n = read(fd, buffer + 13, PIECE_MAX);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  if (n == 0) return -1;
  if (!keep) return 1;
  if (segment < 0 || segment_size + n > SEGMENT_MAX) open_segment();
  int64_t at = now_ms(CLOCK_REALTIME);
  uint32_t length = n;
  buffer[0] = stream;
  memcpy(buffer + 1, &at, 8), memcpy(buffer + 9, &length, 4);
  put(buffer, 13 + n);
  output_bytes += n;
  return 1;
}

static volatile sig_atomic_t child_ended;
static void on_signal(int number) { if (number == SIGCHLD) child_ended = 1; }

static void close_stdin(int by_program) {
  close(stdin_pipe), close(stdin_file);
  stdin_pipe = stdin_file = -1;
  if (by_program) write_file("stdin.closed", "\n");
  wake_guest_part();
}

/* Passes on what the pipe has room for. Returns whether more waits for room. */
static int pass_stdin(void) {
  unsigned char buffer[PIECE_MAX];
  while (stdin_pipe >= 0) {
    int whole = access("stdin.eof", F_OK) == 0;
    ssize_t n = pread(stdin_file, buffer, sizeof buffer, stdin_passed);
    if (n <= 0) {
      if (whole) close_stdin(0);
      return 0;
    }
    ssize_t written = write(stdin_pipe, buffer, n);
    if (written < 0 && errno == EAGAIN) return 1;
    if (written < 0) return close_stdin(1), 0;
    stdin_passed += written;
    fallocate(stdin_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, stdin_passed);
    wake_guest_part();
  }
  return 0;
}

static void end_all(pid_t pid, int number) {
  if (number == SIGKILL && *cgroup && write_number(cgroup, "cgroup.kill", "1") == 0) return;
  kill(-pid, number);
}

static void write_end(const char *kind, int status, const struct rusage *use, const char *more) {
  long long cpu = cgroup_number("cpu.stat", "usage_usec");
  if (cpu < 0)
    cpu = (use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000000LL + use->ru_utime.tv_usec +
          use->ru_stime.tv_usec;
  long long peak = cgroup_number("memory.peak", NULL);
  if (peak < 0) peak = use->ru_maxrss * 1024LL;
  write_file("ended", "kind=%s exit=%d signal=%d cpu_ms=%lld peak=%lld limit=%lld oom=%lld output=%llu at=%lld %s\n",
             kind, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
             WIFSIGNALED(status) ? WTERMSIG(status) : 0, cpu / 1000, peak,
             cgroup_number("memory.max", NULL), cgroup_number("memory.events", "oom_kill"),
             (unsigned long long)output_bytes, (long long)now_ms(CLOCK_REALTIME), more);
  wake_guest_part();
}

static void pipe_pair(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) < 0) exit(1);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  fcntl(ends[0], F_SETPIPE_SZ, 1 << 18);
}

/* Reads until the program has ended and its pipes are empty for now. Returns its wait status. */
static int attend(pid_t pid, int out, int err, struct rusage *use, int *timed_out) {
  struct pollfd fds[3] = {{out, POLLIN, 0}, {err, POLLIN, 0}, {-1, POLLOUT, 0}};
  int64_t end_at = timeout_ms > 0 ? now_ms(CLOCK_MONOTONIC) + timeout_ms : INT64_MAX;
  int status = 0, ended = 0, unsaid = 0;
  sigset_t none;
  sigemptyset(&none);
  while (!ended) {
    int64_t left = end_at - now_ms(CLOCK_MONOTONIC);
    if (left <= 0) {
      end_all(pid, *timed_out ? SIGKILL : SIGTERM);
      end_at = now_ms(CLOCK_MONOTONIC) + KILL_AFTER_MS;
      *timed_out = 1;
      continue;
    }
    if (unsaid && left > WAKE_MS) left = WAKE_MS;
    struct timespec wait = {left / 1000, left % 1000 * 1000000};
    fds[2].fd = pass_stdin() ? stdin_pipe : -1;
    /* SIGCHLD is let through only here, so that none is missed between look and wait. */
    if (!child_ended) ppoll(fds, 3, end_at == INT64_MAX && !unsaid ? NULL : &wait, &none);
    if (child_ended && wait4(pid, &status, WNOHANG, use) == pid) ended = 1;
    child_ended = 0;
    for (int more = 1, rounds = 0; more; rounds++) {
      more = 0;
      for (int i = 0; i < 2; i++) {
        if (fds[i].fd < 0) continue;
        int got = take(fds[i].fd, i + 1, 1);
        if (got < 0) fds[i].fd = -1;
        /* Once ended, whatever is in the pipes is the program's; a child's flood is not awaited. */
        if (got > 0) more = ended && rounds < DRAIN_MAX, unsaid = 1;
      }
    }
    if (unsaid && now_ms(CLOCK_MONOTONIC) - woken_at >= WAKE_MS) wake_guest_part(), unsaid = 0;
  }
  return status;
}

/* Children left behind may go on writing: what they write after the end is not kept. */
static void outlive(int out, int err) {
  struct pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds, 2, -1) < 0) continue;
    for (int i = 0; i < 2; i++)
      if (fds[i].fd >= 0 && fds[i].revents && take(fds[i].fd, i + 1, 0) < 0) fds[i].fd = -1;
  }
}

static int open_stdin(void) {
  int ends[2];
  stdin_file = open("stdin", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (stdin_file < 0 || pipe2(ends, O_CLOEXEC) < 0) exit(1);
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  stdin_pipe = ends[1];
  return ends[0];
}

int main(int argc, char **argv) {
  if (argc != 2 || chdir(argv[1]) < 0) return 2;
  /* Whoever creates this file runs the command; a second runner finds it and leaves. */
  int claim = open("claim", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (claim < 0) return 0;
  dprintf(claim, "%d\n", getpid());
  parse_spec();
  setsid();
  signal(SIGPIPE, SIG_IGN);
  struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_NOCLDSTOP};
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD), sigaddset(&ours, SIGUSR1);
  sigprocmask(SIG_BLOCK, &ours, NULL);
  sigaction(SIGCHLD, &act, NULL), sigaction(SIGUSR1, &act, NULL);
  mkdir("spool", 0700);
  int out[2], err[2], report[2], in;
  pipe_pair(out), pipe_pair(err);
  if (pipe2(report, O_CLOEXEC) < 0) return 1;
  in = stdin_open ? open_stdin() : open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct rusage use = {0};
  pid_t pid = fork();
  if (pid == 0) run_program(report[1], in, out[1], err[1]);
  close(in), close(out[1]), close(err[1]), close(report[1]);
  struct failure failure;
  if (pid < 0 || read(report[0], &failure, sizeof failure) == sizeof failure) {
    char more[128];
    if (pid > 0) waitpid(pid, NULL, 0);
    snprintf(more, sizeof more, "reason=%s errno=%d", pid < 0 ? "no_resources" : failure.reason, pid < 0 ? errno : failure.error);
    write_end("launch_failed", 0, &use, more);
    return 0;
  }
  close(report[0]);
  write_file("started", "%d %lld\n", pid, (long long)now_ms(CLOCK_REALTIME));
  wake_guest_part();
  int timed_out = 0;
  int status = attend(pid, out[0], err[0], &use, &timed_out);
  int oom = cgroup_number("memory.events", "oom_kill") > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  write_end(timed_out ? "timed_out" : oom ? "oom" : WIFSIGNALED(status) ? "signal" : "exited", status, &use, "");
  outlive(out[0], err[0]);
  return 0;
}
