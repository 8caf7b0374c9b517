/* What the parts of the runner (runner.c) share. One process runs one command, so it is all there is. */
#ifndef RUNNER_H
#define RUNNER_H
#include <stdint.h>
#include <sys/types.h>

/* The command's fields, as DIR/spec has them. */
extern char *cgroup, *wake, *user, *cwd, **arguments, **environment;
extern long timeout_ms;
extern int stdin_open;
void parse_spec(void);

int64_t now_ms(clockid_t clock);
void nap(long ms);
/* Whole or not at all; waits where the file system is full. */
__attribute__((format(printf, 2, 3))) void write_file(const char *name, const char *format, ...);
int write_number(const char *directory, const char *name, const char *text);
/* The number behind `key` in a cgroup file, or the file's own where key is NULL; -1 unknown. */
long long cgroup_number(const char *name, const char *key);

/* Why the program could not be started, as the child tells it. */
struct failure { char reason[24]; int error; };
/* In the child: becomes the program, or writes a failure and exits. */
__attribute__((noreturn)) void run_program(int report, int in, int out, int err);

/* Bytes of output that are stored, and of the one frame that waits to be. */
extern uint64_t output_bytes;
extern size_t piece_length;
/* One read of one pipe into the piece; 0 = nothing there now, -1 = its end. */
ssize_t read_piece(int fd, int stream, size_t most);
/* The piece, whole or not at all. Returns whether none waits any more. */
int store_piece(void);

#endif
