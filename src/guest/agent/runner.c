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
 * Writes DIR/claim, DIR/started ("PID MS"), DIR/spool (once there is output; spool.h), DIR/ended (one
 * line of NAME=VALUE words, written after the last byte of output).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "runner.h"
#include "spool.h"

/* A flood is told more rarely: whoever sends it looks again by itself while there is more. */
enum { KILL_AFTER_MS = 5000, WAKE_MS = 10, FLOOD_WAKE_MS = 100, PIPE_BYTES = 1 << 20 };

static int stdin_file = -1, stdin_pipe = -1;
static off_t stdin_passed;
static int64_t woken_at;
static uint64_t woken_at_bytes;

/* Tells the guest part to look; where nobody listens, it looks when it starts. */
static void wake_guest_part(void) {
  static int fd = -1;
  woken_at = now_ms(CLOCK_MONOTONIC), woken_at_bytes = output_bytes;
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

/* TERM to every process of the cgroup, not only to the program's own group. */
static void signal_cgroup(int number) {
  char path[PATH_MAX];
  int pid;
  snprintf(path, sizeof path, "%s/cgroup.procs", cgroup);
  FILE *file = *cgroup ? fopen(path, "re") : NULL;
  while (file && fscanf(file, "%d", &pid) == 1) kill(pid, number);
  if (file) fclose(file);
}

static void end_all(pid_t pid, int number) {
  if (number != SIGKILL || !*cgroup || write_number(cgroup, "cgroup.kill", "1") < 0)
    signal_cgroup(number);
  kill(-pid, number);
}

static void write_end(const char *kind, int status, const struct rusage *use, const char *more) {
  long long cpu = cgroup_number("cpu.stat", "usage_usec");
  if (cpu < 0)
    cpu = (use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1000000LL + use->ru_utime.tv_usec +
          use->ru_stime.tv_usec;
  long long peak = cgroup_number("memory.peak", NULL), limit = cgroup_number("memory.max", NULL);
  struct sysinfo machine;
  if (limit < 0) limit = cgroup_number("../memory.max", NULL); /* of all commands together */
  if (limit < 0 && sysinfo(&machine) == 0) limit = (long long)machine.totalram * machine.mem_unit;
  if (peak < 0) peak = use->ru_maxrss * 1024LL;
  write_file("ended", "kind=%s exit=%d signal=%d cpu_ms=%lld peak=%lld limit=%lld oom=%lld output=%llu at=%lld %s\n",
             kind, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
             WIFSIGNALED(status) ? WTERMSIG(status) : 0, cpu / 1000, peak,
             limit, cgroup_number("memory.events", "oom_kill"),
             (unsigned long long)output_bytes, (long long)now_ms(CLOCK_REALTIME), more);
  wake_guest_part();
}

static void pipe_pair(int ends[2]) {
  if (pipe2(ends, O_CLOEXEC) < 0) exit(1);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  fcntl(ends[0], F_SETPIPE_SZ, PIPE_BYTES);
}

struct run {
  pid_t pid;
  struct pollfd fds[3]; /* stdout, stderr, stdin */
  int ended, status, timed_out, unsaid;
  int64_t end_at; /* when its time is over; INT64_MAX = never */
  size_t left[2]; /* once it has ended: what it had written that was not read yet */
  long stuck_ms;  /* how long to wait before the next try to store */
  struct rusage use;
};

static void read_pipes(struct run *run) {
  for (int i = 0; i < 2 && store_piece(); i++) {
    int *fd = &run->fds[i].fd;
    if (*fd < 0 || (run->ended && run->left[i] == 0)) continue;
    ssize_t n = read_piece(*fd, i + 1, run->ended ? run->left[i] : PIECE_MAX);
    if (n < 0) *fd = -1;
    if (run->ended) run->left[i] -= n > 0 ? (size_t)n : run->left[i];
    if (n > 0) run->unsaid = 1;
  }
  int stored = store_piece();
  run->stuck_ms = stored ? 0 : run->stuck_ms == 0 ? 5 : run->stuck_ms < 100 ? run->stuck_ms + 1 : 100;
}

/* What is in the pipes now is the program's; what its children write from here on is not. */
static void note_end(struct run *run) {
  run->ended = 1;
  for (int i = 0; i < 2; i++) {
    int count = 0;
    if (run->fds[i].fd >= 0 && ioctl(run->fds[i].fd, FIONREAD, &count) == 0) run->left[i] = count;
  }
  if (run->timed_out) end_all(run->pid, SIGKILL);
}

static void enforce_time(struct run *run) {
  if (run->ended || now_ms(CLOCK_MONOTONIC) < run->end_at) return;
  end_all(run->pid, run->timed_out ? SIGKILL : SIGTERM);
  run->end_at = now_ms(CLOCK_MONOTONIC) + KILL_AFTER_MS;
  run->timed_out = 1;
}

static int64_t wake_ms(void) {
  return output_bytes - woken_at_bytes > PIECE_MAX ? FLOOD_WAKE_MS : WAKE_MS;
}

/* Until there is something to do. SIGCHLD is let through only here: none is missed in between. */
static void wait_for_more(struct run *run) {
  struct pollfd fds[3];
  int64_t wait = run->ended || run->end_at == INT64_MAX ? 3600000 : run->end_at - now_ms(CLOCK_MONOTONIC);
  if (wait < 0) wait = 0;
  if (run->unsaid && wait > wake_ms()) wait = wake_ms();
  if (run->stuck_ms && wait > run->stuck_ms) wait = run->stuck_ms;
  memcpy(fds, run->fds, sizeof fds);
  if (run->stuck_ms) fds[0].fd = fds[1].fd = -1;
  struct timespec time = {wait / 1000, wait % 1000 * 1000000};
  sigset_t none;
  sigemptyset(&none);
  if (!child_ended) ppoll(fds, 3, &time, &none);
}

/* Reads until the program has ended and what it wrote is stored. */
static void attend(struct run *run) {
  while (!run->ended || run->left[0] || run->left[1] || piece_length) {
    if (!run->ended) run->fds[2].fd = pass_stdin() ? stdin_pipe : -1;
    if (!run->ended || run->stuck_ms) wait_for_more(run);
    if (!run->ended && child_ended) {
      child_ended = 0;
      if (wait4(run->pid, &run->status, WNOHANG, &run->use) == run->pid) note_end(run);
    }
    enforce_time(run);
    read_pipes(run);
    if (run->unsaid && now_ms(CLOCK_MONOTONIC) - woken_at >= wake_ms()) wake_guest_part(), run->unsaid = 0;
  }
}

/* Children left behind may go on writing: what they write after the end is not kept. */
static void outlive(int out, int err) {
  struct pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds, 2, -1) < 0) continue;
    for (int i = 0; i < 2; i++)
      if (fds[i].fd >= 0 && fds[i].revents && read_piece(fds[i].fd, 0, PIECE_MAX) < 0) fds[i].fd = -1;
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

static void block_signals(void) {
  struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_NOCLDSTOP};
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGCHLD), sigaddset(&ours, SIGUSR1);
  sigprocmask(SIG_BLOCK, &ours, NULL);
  sigaction(SIGCHLD, &act, NULL), sigaction(SIGUSR1, &act, NULL);
  signal(SIGPIPE, SIG_IGN);
}

static int report_failure(const char *reason, int error) {
  struct rusage none = {0};
  char more[256];
  snprintf(more, sizeof more, "reason=%s detail=%s", reason, strerror(error));
  for (char *at = strstr(more, "detail="); *at; at++)
    if (*at == ' ') *at = '_';
  write_end("launch_failed", 0, &none, more);
  return 0;
}

static const char *kind_of(const struct run *run) {
  int status = run->status;
  if (run->timed_out) return "timed_out";
  /* A shell tells of its child's end by 128 + 9. */
  int killed = WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 128 + SIGKILL;
  if (killed && cgroup_number("memory.events", "oom_kill") > 0) return "oom";
  return WIFSIGNALED(status) ? "signal" : "exited";
}

/* In bridge.c: another job of the same small binary. */
int bridge(const char *device, const char *socket_path);

/*
 * Whoever makes this file runs the command; a second runner finds it and leaves. It comes with our
 * number in it, because a claim without one looks like that of a runner that is gone.
 */
static int claim(void) {
  char own[32];
  snprintf(own, sizeof own, "claim.%d", getpid());
  int file = open(own, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return 0;
  int is_ours = dprintf(file, "%d\n", getpid()) > 0 && link(own, "claim") == 0;
  close(file), unlink(own);
  return is_ours;
}

int main(int argc, char **argv) {
  if (argc == 4 && !strcmp(argv[1], "--bridge")) return bridge(argv[2], argv[3]);
  if (argc != 2 || chdir(argv[1]) < 0) return 2;
  /* Before the claim, which tells our number: a signal may come as soon as it is known. */
  block_signals();
  setsid();
  umask(022);
  write_number("/proc/self", "oom_score_adj", "-900");
  if (!claim()) return 0;
  parse_spec();
  int out[2], err[2], report[2];
  pipe_pair(out), pipe_pair(err);
  if (pipe2(report, O_CLOEXEC) < 0) return 1;
  int in = stdin_open ? open_stdin() : open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct run run = {.end_at = INT64_MAX, .fds = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}, {-1, POLLOUT, 0}}};
  run.pid = fork();
  if (run.pid == 0) run_program(report[1], in, out[1], err[1]);
  if (run.pid < 0) return report_failure("no_resources", errno);
  if (timeout_ms > 0) run.end_at = now_ms(CLOCK_MONOTONIC) + timeout_ms;
  close(in), close(out[1]), close(err[1]), close(report[1]);
  struct failure failure;
  if (read(report[0], &failure, sizeof failure) == sizeof failure) {
    waitpid(run.pid, NULL, 0);
    return report_failure(failure.reason, failure.error);
  }
  close(report[0]);
  write_file("started", "%d %lld\n", run.pid, (long long)now_ms(CLOCK_REALTIME));
  wake_guest_part();
  attend(&run);
  write_end(kind_of(&run), run.status, &run.use, "");
  outlive(out[0], err[0]);
  return 0;
}
