/**
 * How a VM's process ended, from what its keeper wrote down. Pure; the same record always gives the
 * same end. What a guest prints decides nothing but whether its own reset was a panic.
 */
import { z } from "zod";
import { parseJson } from "../../core/json.ts";
import type { VmEnd } from "../vmm.ts";

export type EndRecord =
  /** The keeper would not start it. */
  | { readonly kind: "refused"; readonly words: string }
  /** A shell's status of QEMU: 128 + the signal that ended it. */
  | { readonly kind: "exited"; readonly status: number; readonly killed: boolean }
  /** Neither runs any more, and nobody saw the end. */
  | { readonly kind: "lost"; readonly killed: boolean; readonly why: string };

export interface EndFacts {
  readonly record: EndRecord;
  /** The newest of what QEMU said, its events among it. */
  readonly log: string;
  readonly serial: string;
  /** It was seen to run. */
  readonly wasReady: boolean;
}

export interface Ended {
  readonly how: VmEnd;
  readonly detail: string;
}

const detailMax = 500;

export function parseEndRecord(text: string): EndRecord | undefined {
  const refused = /^refused (.+)$/m.exec(text);
  if (refused) return { kind: "refused", words: refused[1] ?? "" };
  const exited = /^exited (\d{1,3}) (yes|no)$/m.exec(text);
  if (exited) return { kind: "exited", status: Number(exited[1]), killed: exited[2] === "yes" };
  const lost = /^lost (yes|no) (.+)$/m.exec(text);
  if (lost) return { kind: "lost", killed: lost[1] === "yes", why: lost[2] ?? "" };
  return undefined;
}

/** A guest that asked for its end had it, even where we killed its last moments. */
export function endOf(facts: EndFacts): Ended {
  const { record, log } = facts;
  if (record.kind === "refused") return { how: "launch_failed", detail: record.words };
  const byGuest = guestsReason(facts);
  if (byGuest) return byGuest;
  if (record.killed) return { how: "killed", detail: "ended on request" };
  if (record.kind === "lost") return { how: "died", detail: record.why };
  const { status } = record;
  if (status >= 128) return { how: "died", detail: `QEMU was ended by signal ${status - 128}` };
  const words = wordsOf(log) || `QEMU ended with status ${status} and said nothing`;
  return { how: facts.wasReady || status === 0 ? "died" : "launch_failed", detail: words };
}

const eventSchema = z.union([
  z.object({ event: z.literal("GUEST_PANICKED") }),
  z.object({ event: z.literal("SHUTDOWN"), data: z.object({ reason: z.string() }) }),
]);

const guestEnds: Readonly<Record<string, Ended>> = {
  "guest-shutdown": { how: "guest_shutdown", detail: "the guest powered itself off" },
  "guest-reset": { how: "guest_reboot", detail: "the guest reset itself" },
  "guest-panic": { how: "guest_panic", detail: "the guest's kernel panicked" },
};

function guestsReason({ log, serial }: EndFacts): Ended | undefined {
  const events = log.split("\n").flatMap((line) => parseEvent(line));
  const shutdown = events.flatMap((each) => (each.event === "SHUTDOWN" ? [each.data.reason] : []));
  const panicked = events.some(({ event }) => event === "GUEST_PANICKED");
  const end = guestEnds[panicked ? "guest-panic" : (shutdown.at(-1) ?? "")];
  // Before a guest has its panic device, a panic only shows as a reset.
  const saysSo = end?.how === "guest_reboot" && serial.includes("Kernel panic - not syncing");
  return saysSo ? guestEnds["guest-panic"] : end;
}

function parseEvent(line: string): z.infer<typeof eventSchema>[] {
  if (!line.startsWith("{")) return [];
  // It may be half a line: the older part was dropped, or the end came while it was written.
  const { success, data } = eventSchema.safeParse(parseJson(line));
  return success ? [data] : [];
}

function wordsOf(log: string): string {
  const lines = log.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
  return lines.join("; ").slice(-detailMax);
}
