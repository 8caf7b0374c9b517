/*
 * Carries bytes between a virtio-serial port and the guest part's unix socket, both ways, with one
 * buffer each. A blocked read of a port would hold a thread of the guest part's small pool for ever;
 * here both ends are polled. Ends when the guest part does; never when the host goes away.
 *
 * usage: holdfast-run --bridge DEVICE SOCKET
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 18, ABSENT_MS = 50 };

struct way {
  int from, to;
  size_t start, end;
  char bytes[BUFFER];
};

static void nap_absent(void) {
  struct timespec t = {0, ABSENT_MS * 1000000};
  nanosleep(&t, NULL);
}

static int connect_to(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) return -1;
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

/* A port has one reader at a time: another bridge's end may be a moment away. */
static int open_port(const char *path) {
  int fd;
  while ((fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)) < 0) {
    if (errno != EBUSY && errno != EINTR) return -1;
    nap_absent();
  }
  return fd;
}

/* Moves what can be moved now. Returns -1 when an end is gone, 0 when `from` has nobody behind it. */
static int carry(struct way *way) {
  if (way->start == way->end) {
    ssize_t n = read(way->from, way->bytes, BUFFER);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 1 : -1;
    if (n == 0) return 0;
    way->start = 0, way->end = n;
  }
  while (way->start < way->end) {
    ssize_t n = write(way->to, way->bytes + way->start, way->end - way->start);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 1 : -1;
    way->start += n;
  }
  return 1;
}

static short wanted(const struct way *in, const struct way *out) {
  return (in->start == in->end ? POLLIN : 0) | (out->start < out->end ? POLLOUT : 0);
}

int bridge(const char *device, const char *socket_path) {
  static struct way to_guest, to_host;
  int guest = connect_to(socket_path), port = open_port(device);
  if (guest < 0 || port < 0) return 1;
  to_guest.from = to_host.to = port;
  to_guest.to = to_host.from = guest;
  for (;;) {
    struct pollfd fds[2] = {{guest, wanted(&to_host, &to_guest), 0}, {port, wanted(&to_guest, &to_host), 0}};
    if (poll(fds, 2, -1) < 0) continue;
    if (fds[0].revents & (POLLERR | POLLHUP)) return 0;
    /* Nobody behind the port: it is looked at now and then, and so is the guest part. */
    if (fds[1].revents & POLLHUP) nap_absent();
    if (carry(&to_guest) < 0) return 1;
    int alive = carry(&to_host);
    if (alive < 0) return 1;
    if (alive == 0) return 0;
  }
}
