/* Keeps a command's output in bounded segments (spool.h). Never overwrites or removes one. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "runner.h"
#include "spool.h"

uint64_t output_bytes;
size_t piece_length;
static int segment = -1;
static off_t segment_size;
/* One frame that waits to be stored; while it does, no pipe is read. */
static unsigned char piece[HEAD + PIECE_MAX];

static int segments_waiting(void) {
  DIR *directory = opendir("spool");
  int count = 0;
  if (!directory) return mkdir("spool", 0700), 0;
  for (struct dirent *entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

/* Whether there is an open segment with room for the piece. */
static int find_room(void) {
  char name[32];
  if (segment >= 0 && segment_size + piece_length <= SEGMENT_MAX) return 1;
  if (segment >= 0 && segment_size == 0) return 1;
  /* The program waits on its full pipe until the host has taken some. */
  if (segments_waiting() >= SEGMENTS_MAX) return 0;
  snprintf(name, sizeof name, "spool/%016llx", (unsigned long long)output_bytes);
  int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return 0;
  if (segment >= 0) close(segment);
  segment = fd, segment_size = 0;
  return 1;
}

/* The piece, whole or not at all: a part of it is cut off again. Returns whether it is stored. */
int store_piece(void) {
  if (piece_length == 0) return 1;
  if (!find_room()) return 0;
  ssize_t written = write(segment, piece, piece_length);
  if (written != (ssize_t)piece_length) {
    if (written > 0 && ftruncate(segment, segment_size) < 0) segment_size += written;
    return 0;
  }
  segment_size += piece_length;
  output_bytes += piece_length - HEAD;
  piece_length = 0;
  return 1;
}

/* One read of one pipe into the piece; 0 = nothing there now, -1 = its end. */
ssize_t read_piece(int fd, int stream, size_t most) {
  ssize_t n = read(fd, piece + HEAD, most < PIECE_MAX ? most : PIECE_MAX);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  if (n == 0) return -1;
  put_head(piece, (struct head){stream, now_ms(CLOCK_REALTIME), n});
  piece_length = HEAD + n;
  return n;
}
