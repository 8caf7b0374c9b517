/* Reads a command's segments (spool.h) and frames them for the host. Removes nothing. */
#define _GNU_SOURCE
#include "spool.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Short writes of one stream within this time are told as one, with the time of the first. */
enum { TOGETHER_MS = 20 };

void put_head(unsigned char *bytes, struct head head) {
  bytes[0] = head.stream;
  memcpy(bytes + 1, &head.at_ms, 8), memcpy(bytes + 9, &head.length, 4);
}

struct head head_in(const unsigned char *bytes) {
  struct head head = {.stream = bytes[0]};
  memcpy(&head.at_ms, bytes + 1, 8), memcpy(&head.length, bytes + 9, 4);
  return head;
}

static int open_segment(struct reading *reading, uint64_t start) {
  char path[256];
  snprintf(path, sizeof path, "%s/%016llx", reading->directory, (unsigned long long)start);
  int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return 0;
  if (reading->fd >= 0) close(reading->fd);
  reading->fd = fd, reading->start = start, reading->position = 0, reading->skip = 0;
  return 1;
}

/* Frames before the wanted offset are passed over; it may lie within one. */
static void walk(struct reading *reading) {
  unsigned char bytes[HEAD];
  uint64_t at = reading->start;
  while (at < reading->offset && pread(reading->fd, bytes, HEAD, reading->position) == HEAD) {
    uint32_t length = head_in(bytes).length;
    if (at + length > reading->offset) break;
    reading->position += HEAD + length, at += length;
  }
  reading->skip = reading->offset - at;
}

/* The newest segment that begins at or before the wanted offset. */
static int open_at_offset(struct reading *reading) {
  DIR *directory = opendir(reading->directory);
  uint64_t best = 0;
  int found = 0;
  if (!directory) return 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    if (entry->d_name[0] == '.') continue;
    uint64_t start = strtoull(entry->d_name, NULL, 16);
    if (start <= reading->offset && (!found || start > best)) best = start, found = 1;
  }
  closedir(directory);
  if (!found || !open_segment(reading, best)) return 0;
  walk(reading);
  return 1;
}

/* Where a segment ends the next one begins, and bears the offset as its name. */
static int open_next(struct reading *reading) {
  if (reading->fd < 0) return open_at_offset(reading);
  return reading->offset != reading->start && open_segment(reading, reading->offset);
}

void read_from(struct reading *reading, const char *directory, const char *id, uint64_t offset) {
  int is_there = reading->fd >= 0 && reading->offset == offset && !strcmp(reading->id, id);
  if (is_there) return;
  if (reading->fd >= 0) close(reading->fd);
  *reading = (struct reading){.offset = offset, .fd = -1};
  snprintf(reading->directory, sizeof reading->directory, "%s", directory);
  snprintf(reading->id, sizeof reading->id, "%s", id);
}

/* Moves further frames behind the first, as far as they belong together. Returns the new end. */
static size_t join(unsigned char *bytes, size_t end, size_t limit, struct head first, size_t *taken) {
  size_t from = end;
  while (from + HEAD <= limit) {
    struct head next = head_in(bytes + from);
    if (next.stream != first.stream || next.at_ms - first.at_ms > TOGETHER_MS) break;
    if (next.length > limit - from - HEAD) break;
    memmove(bytes + end, bytes + from + HEAD, next.length);
    end += next.length, from += HEAD + next.length;
  }
  *taken = from;
  return end;
}

static void put_u32(unsigned char *bytes, uint32_t number) {
  for (int i = 0; i < 4; i++) bytes[i] = number >> (24 - 8 * i);
}

/* The frame of src/guest/frames.ts around the payload from `start` to `end`. */
static size_t wrap(struct reading *reading, struct head head, unsigned char *start, unsigned char *end,
                   unsigned char **message) {
  char header[ROOM - 8];
  int length = snprintf(header, sizeof header,
                        "{\"type\":\"output\",\"command_id\":\"%s\",\"offset\":%llu,\"stream\":\"%s\",\"at_ms\":%lld}",
                        reading->id, (unsigned long long)reading->offset,
                        head.stream == 2 ? "stderr" : "stdout", (long long)head.at_ms);
  unsigned char *at = start - length;
  memcpy(at, header, length);
  *end = '\n';
  put_u32(at - 4, length);
  put_u32(at - 8, 4 + length + (end - start) + 1);
  *message = at - 8;
  return end + 1 - *message;
}

static size_t read_frame(struct reading *reading, unsigned char *bytes, unsigned char **message) {
  unsigned char *frames = bytes + ROOM;
  ssize_t have = pread(reading->fd, frames, HEAD + PIECE_MAX, reading->position);
  if (have < HEAD) return 0;
  struct head head = head_in(frames);
  if (head.length > have - HEAD) return 0;
  size_t taken, end = join(frames, HEAD + head.length, have, head, &taken);
  unsigned char *start = frames + HEAD + reading->skip;
  size_t length = wrap(reading, head, start, frames + end, message);
  reading->position += taken, reading->offset += end - HEAD - reading->skip, reading->skip = 0;
  return length;
}

size_t read_message(struct reading *reading, unsigned char *bytes, unsigned char **message) {
  for (;;) {
    size_t length = reading->fd < 0 ? 0 : read_frame(reading, bytes, message);
    if (length || !open_next(reading)) return length;
  }
}
