/*
 * Carries bytes between the guest's port and the guest part's unix socket, and puts output into the
 * channel by itself, so that none of it passes the guest part. Both ends are polled: a blocked read
 * of a port would hold a thread of the guest part's small pool for ever. Ends when the guest part
 * does; never when the host goes away.
 *
 * usage: holdfast-run --bridge PORT SOCKET
 * PORT is a character device, or where to listen as a unix socket. On SOCKET, both ways, are records:
 * length u32 big-endian, kind u8, then `length` bytes. Kind 'b': bytes to or from the port. Kind 'p',
 * from the guest part: put output in, fields that each end with a NUL byte: spool directory, command,
 * from which offset, up to about which; answered, once it is in, by kind 'r': the offset reached.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include "spool.h"

/* A flood that was caught up with is looked at again before the guest part has to be woken for it. */
enum { FLOOD = 1 << 18, TAIL_MS = 2, TAILS_MAX = 10 };
enum { ABSENT_MS = 50, RECORD = 5, PULL_MAX = 512, FROM_PORT = 1 << 16 };

/* What waits to be written to one end. */
struct waiting {
  unsigned char bytes[MESSAGE_MAX];
  unsigned char *at;
  size_t left;
};

static struct waiting to_port, to_guest;
static int port = -1, listener = -1, guest = -1;

/* The record that the guest part is in the middle of. */
static unsigned char record[RECORD + PULL_MAX];
static size_t record_has, bytes_left;

static struct reading reading = {.fd = -1};
static int pulling, owes_answer, tails;
static uint64_t pull_from, pull_until;

static void nap_absent(void) {
  struct timespec t = {0, ABSENT_MS * 1000000};
  nanosleep(&t, NULL);
}

static struct sockaddr_un address_of(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  return address;
}

static int open_guest(const char *path) {
  struct sockaddr_un address = address_of(path);
  guest = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (guest < 0 || connect(guest, (struct sockaddr *)&address, sizeof address) < 0) return -1;
  return fcntl(guest, F_SETFL, O_NONBLOCK);
}

/* A device has one reader at a time: another bridge's end may be a moment away. */
static int open_device(const char *path) {
  while ((port = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0) {
    if (errno != EBUSY && errno != EINTR) return -1;
    nap_absent();
  }
  return 0;
}

static int open_port(const char *path) {
  struct stat s;
  if (stat(path, &s) == 0 && S_ISCHR(s.st_mode)) return open_device(path);
  struct sockaddr_un address = address_of(path);
  unlink(path);
  listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) < 0) return -1;
  return listen(listener, 8);
}

/* A newer host replaces the older; what was on its way is the middle of something to it. */
static void accept_host(void) {
  int host = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (host < 0) return;
  if (port >= 0) close(port);
  port = host;
}

/* A device stays when its host goes; one that fails is gone. */
static void lose_host(int is_error) {
  if (listener < 0) {
    if (is_error) _exit(1);
    return;
  }
  close(port);
  port = -1;
}

/* Returns what read() does; 0 also when there is nothing now, -1 when the end is gone. */
static ssize_t read_some(int fd, void *bytes, size_t most) {
  ssize_t n = read(fd, bytes, most);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  return n == 0 ? -1 : n;
}

/* Returns whether the end is still there. */
static int write_waiting(int fd, struct waiting *waiting) {
  while (waiting->left > 0) {
    ssize_t n = write(fd, waiting->at, waiting->left);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    waiting->at += n, waiting->left -= n;
  }
  return 1;
}

static void put_record(size_t length, char kind) {
  unsigned char *bytes = to_guest.bytes;
  for (int i = 0; i < 4; i++) bytes[i] = length >> (24 - 8 * i);
  bytes[4] = kind;
  to_guest.at = bytes, to_guest.left = RECORD + length;
}

static void answer_pull(void) {
  char text[32];
  int length = snprintf(text, sizeof text, "%llu", (unsigned long long)reading.offset);
  memcpy(to_guest.bytes + RECORD, text, length);
  put_record(length, 'r');
  owes_answer = 0;
}

static void begin_pull(void) {
  char *directory = (char *)record + RECORD, *id = directory + strlen(directory) + 1;
  char *from = id + strlen(id) + 1, *until = from + strlen(from) + 1;
  pull_from = strtoull(from, NULL, 10), pull_until = strtoull(until, NULL, 10);
  read_from(&reading, directory, id, pull_from);
  pulling = 1, tails = 0;
}

static void pull(void) {
  if (reading.offset < pull_until) {
    to_port.left = read_message(&reading, to_port.bytes, &to_port.at);
    if (to_port.left > 0) {
      tails = 0;
      return;
    }
    if (reading.offset - pull_from >= FLOOD && tails < TAILS_MAX) {
      tails++;
      return;
    }
  }
  pulling = 0, owes_answer = 1;
}

static size_t record_length(void) {
  return (size_t)record[0] << 24 | record[1] << 16 | record[2] << 8 | record[3];
}

/* The record's head, or a pull's fields. Returns 0 when nothing came, -1 when it made no sense. */
static int read_record(void) {
  size_t want = record_has < RECORD ? RECORD : RECORD + record_length();
  ssize_t n = read_some(guest, record + record_has, want - record_has);
  if (n <= 0) return n;
  record_has += n;
  if (record_has < RECORD) return 1;
  if (record[4] == 'b') return bytes_left = record_length(), record_has = 0, 1;
  size_t length = record_length();
  if (record[4] != 'p' || length == 0 || length > PULL_MAX) return -1;
  if (record_has < RECORD + length) return 1;
  record_has = 0;
  /* Four fields, the last of which ends the record. */
  int fields = 0;
  for (size_t i = 0; i < length; i++) fields += record[RECORD + i] == 0;
  if (fields != 4 || record[RECORD + length - 1] != 0) return -1;
  begin_pull();
  return 1;
}

/* Finds something to write to the port. Returns as `read_record`. */
static int fill_to_port(void) {
  while (to_port.left == 0) {
    if (pulling) {
      pull();
      if (pulling && to_port.left == 0) return 0;
      continue;
    }
    if (owes_answer) return 0;
    if (bytes_left == 0) {
      int read = read_record();
      if (read <= 0) return read;
      continue;
    }
    size_t most = bytes_left < sizeof to_port.bytes ? bytes_left : sizeof to_port.bytes;
    ssize_t n = read_some(guest, to_port.bytes, most);
    if (n <= 0) return n;
    to_port.at = to_port.bytes, to_port.left = n, bytes_left -= n;
  }
  return 1;
}

/* Finds something to write to the guest part. */
static void fill_to_guest(void) {
  if (to_guest.left > 0) return;
  if (owes_answer) return answer_pull();
  if (port < 0) return;
  ssize_t n = read(port, to_guest.bytes + RECORD, FROM_PORT);
  if (n > 0) put_record(n, 'b');
  else if (n == 0 || (errno != EAGAIN && errno != EINTR)) lose_host(n < 0);
}

static void wait_for_more(void) {
  int wait_ms = pulling && to_port.left == 0 ? TAIL_MS : -1;
  short to_do = (to_guest.left ? POLLOUT : 0) | (to_port.left || pulling || owes_answer ? 0 : POLLIN);
  short at_port = (to_port.left ? POLLOUT : 0) | (to_guest.left ? 0 : POLLIN);
  struct pollfd fds[3] = {{guest, to_do, 0}, {port, at_port, 0}, {listener, POLLIN, 0}};
  if (poll(fds, 3, wait_ms) < 0) return;
  if (fds[0].revents & (POLLERR | POLLHUP)) _exit(0);
  if (fds[2].revents & POLLIN) accept_host();
  /* Nobody behind the port: it is looked at now and then, and so is the guest part. */
  if (listener < 0 && fds[1].revents & POLLHUP) nap_absent();
}

int bridge(const char *port_path, const char *socket_path) {
  signal(SIGPIPE, SIG_IGN);
  if (open_guest(socket_path) < 0 || open_port(port_path) < 0) return 1;
  for (;;) {
    wait_for_more();
    for (int moves = 1; moves;) {
      fill_to_guest();
      if (!write_waiting(guest, &to_guest)) return 0;
      int filled = fill_to_port();
      if (filled < 0) return 0;
      if (port >= 0 && to_port.left && !write_waiting(port, &to_port)) lose_host(1);
      moves = (filled > 0 || owes_answer) && to_port.left == 0 && to_guest.left == 0;
    }
  }
}
