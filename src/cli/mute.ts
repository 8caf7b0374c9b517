/**
 * What becomes of a process whose words are not taken, because nobody reads them or their file has
 * no room. Without this, one that waits until they are taken would wait for ever.
 */
import { writeSync } from "node:fs";
import { MiB } from "../core/units.ts";
import { isErrno } from "../system/files.ts";

/** As a shell tells of a program that SIGPIPE ended: its reader wanted no more. */
const exitUnread = 141;
const standardError = 2;
const waitingBytesMax = 8 * MiB;

/** Ends the process with this code as soon as something it said was not taken. */
export function endWhenMute(exitCode: number): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error) => {
      if (isErrno(error, "EPIPE")) process.exit(exitUnread);
      complain(`error: what was to be written here is lost: ${error.message}\n`);
      process.exit(exitCode);
    });
}

/** Not through a stream, which may be the one that failed. */
function complain(text: string): void {
  try {
    writeSync(standardError, text);
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
  }
}

/**
 * For lines of a log on standard output, which may fill the disk or stall: some are lost then, and
 * the next one that is taken says so. A log that ends the process or fills memory would be worse.
 */
export function logLines(): (line: string) => void {
  let lost = false;
  process.stdout.on("error", () => {
    lost = true;
  });
  return (line) => {
    if (process.stdout.writableLength > waitingBytesMax) {
      lost = true;
      return;
    }
    // Half a line may stand before it.
    const notice = lost
      ? '\n{"level":"warn","message":"log lines before this one are lost"}\n'
      : "";
    lost = false;
    process.stdout.write(`${notice}${line}\n`);
  };
}
