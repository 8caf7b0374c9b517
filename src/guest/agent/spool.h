/*
 * A command's output on its way to the host, as files: the runner writes segments, the bridge reads
 * them. A segment is named by the output before it (16 hex digits); it holds frames: stream u8
 * (1 stdout, 2 stderr), time ms u64, length u32, little-endian, then the bytes.
 */
#ifndef SPOOL_H
#define SPOOL_H
#include <stdint.h>
#include <sys/types.h>

enum { HEAD = 13, PIECE_MAX = 1 << 18, SEGMENT_MAX = 1 << 20, SEGMENTS_MAX = 16 };

struct head {
  unsigned char stream;
  int64_t at_ms;
  uint32_t length;
};

void put_head(unsigned char *bytes, struct head head);
struct head head_in(const unsigned char *bytes);

/* Room for the longest message around the longest piece. */
enum { ROOM = 384, MESSAGE_MAX = ROOM + HEAD + PIECE_MAX + 1 };

/* Where one command's output is read, between two calls. */
struct reading {
  char directory[200], id[64];
  uint64_t offset, start; /* the next byte of output; the output before the open segment */
  int fd;                 /* that segment, or -1 */
  off_t position;         /* the next frame in it */
  uint32_t skip;          /* how much of that frame was read already */
};

/* Places it at `offset`; goes on where it is when it is there already. */
void read_from(struct reading *reading, const char *directory, const char *id, uint64_t offset);

/*
 * The next output as a message of the channel, somewhere in `bytes` of MESSAGE_MAX; returns its
 * length, 0 when there is no more yet. At most one piece; short writes of one stream are joined.
 */
size_t read_message(struct reading *reading, unsigned char *bytes, unsigned char **message);

#endif
