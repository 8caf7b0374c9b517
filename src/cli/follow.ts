/**
 * Writing a command's output to our own stdout and stderr as it comes, from a cursor on, so that a
 * lost connection or a restarted server loses and repeats nothing.
 */
import type { CommandView } from "../api/command-view.ts";
import type { PartView } from "../api/output-pages.ts";
import type { Client } from "./client.ts";
import { note, printJson } from "./command.ts";

export interface Following {
  /** Until the command has ended; otherwise what is stored now. */
  live: boolean;
  /** Each part as a line of JSON instead. */
  json: boolean;
}

export async function writeOutput(
  client: Client,
  id: string,
  { live, json }: Following,
): Promise<void> {
  let cursor: string | undefined;
  while (true) {
    const query = { wait: live ? "20" : "0", ...(cursor !== undefined && { cursor }) };
    const page = await (await client.output[":id"].output.$get({ param: { id }, query })).json();
    if (typeof page === "string" || !("parts" in page)) return;
    for (const part of page.parts) await (json ? printJson(part) : writePart(part));
    cursor = page.cursor;
    if (page.complete || (!live && !page.more)) return;
  }
}

async function writePart(part: PartView): Promise<void> {
  if ("gap" in part) return note(`[holdfast: ${part.gap.bytes} bytes not kept]`);
  const data = "text" in part ? Buffer.from(part.text) : Buffer.from(part.data_base64, "base64");
  const to = part.stream === "stdout" ? process.stdout : process.stderr;
  if (!to.write(data)) await new Promise((drained) => to.once("drain", drained));
}

const signalNumbers: Readonly<Record<string, number>> = {
  HUP: 1,
  INT: 2,
  QUIT: 3,
  ILL: 4,
  TRAP: 5,
  ABRT: 6,
  BUS: 7,
  FPE: 8,
  KILL: 9,
  USR1: 10,
  SEGV: 11,
  USR2: 12,
  PIPE: 13,
  ALRM: 14,
  TERM: 15,
};

export const exitCodesText = `exit codes: the command's own · 128+n ended by signal n · 124 timed out · 125 refused by
  Holdfast before it was sent · 126 could not be started · 127 no such program ·
  137 out of memory · 75 it may have run: check before you repeat it`;

/** Whoever asked cannot know all that the command did. */
export const exitUnsure = 75;

/** The exit code that tells a shell how the command ended. */
export function exitCodeOf(command: CommandView): number {
  const { state, exit_code, signal, launch_failure } = command;
  if (state === "timed_out") return 124;
  if (state === "launch_failed") return launch_failure?.reason === "not_found" ? 127 : 126;
  if (state === "not_launched") return 125;
  if (state === "resource_exhausted") return 137;
  if (state === "infrastructure_lost" || state === "unknown") return exitUnsure;
  if (exit_code !== null) return exit_code;
  return 128 + (signalNumbers[signal ?? "TERM"] ?? 15);
}

/** What a person has to know beside the exit code; undefined where that says it all. */
export function verdictOf(command: CommandView): string | undefined {
  const { id, state, message, launch_failure } = command;
  if (state === "exited") return undefined;
  if (state === "infrastructure_lost" || state === "unknown")
    return `${id}: ${message} It may have run: check before you repeat it.`;
  if (state === "not_launched") return `${id}: ${message} It never ran: send it again.`;
  return `${id}: ${message}${launch_failure?.detail ? ` (${launch_failure.detail})` : ""}`;
}
