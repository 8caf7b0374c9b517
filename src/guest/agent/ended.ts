/** The one line of NAME=VALUE words in which an end is written down, by the runner or by us. */
import type { CommandEnd, GuestMessage, LaunchFailure, SignalName } from "../guest.ts";
import { signalName } from "./signals.ts";

type Ended = Extract<GuestMessage, { type: "ended" }>;

class Words {
  readonly #words: ReadonlyMap<string, string>;

  constructor(line: string) {
    const words = line.trim().split(" ");
    this.#words = new Map(words.map((word) => word.split("=", 2) as [string, string]));
  }

  text(name: string): string | undefined {
    return this.#words.get(name);
  }

  /** A number of at least `least`; undefined where it is not known. */
  number(name: string, least = 0): number | undefined {
    const value = Number(this.#words.get(name) ?? Number.NaN);
    return value >= least ? value : undefined;
  }
}

export function endedFrom(
  line: string,
  { command_id, signalled }: { command_id: string; signalled: SignalName | null },
): Ended {
  const words = new Words(line);
  return {
    type: "ended",
    command_id,
    end: endOf(words),
    usage: {
      cpu_ms: words.number("cpu_ms") ?? 0,
      memory_peak_bytes: words.number("peak", 1) ?? null,
      oom_kills: words.number("oom") ?? 0,
    },
    at_ms: words.number("at") ?? 0,
    output_bytes: words.number("output") ?? 0,
    signalled,
  };
}

/** How it ended cannot be told: only how much it wrote. */
export function lostEnd(outputBytes: number, atMs: number): string {
  return `kind=unknown output=${outputBytes} at=${atMs}\n`;
}

/** The end of one whose runner was never started. */
export function unlaunched(command_id: string, detail: string): Ended {
  return {
    type: "ended",
    command_id,
    end: { kind: "launch_failed", reason: "no_resources", detail: detail.slice(0, 200) },
    usage: { cpu_ms: 0, memory_peak_bytes: null, oom_kills: 0 },
    at_ms: Date.now(),
    output_bytes: 0,
    signalled: null,
  };
}

function endOf(words: Words): CommandEnd {
  const number = words.number("signal", 1);
  const signal = number === undefined ? null : signalName(number);
  const exit_code = words.number("exit") ?? null;
  switch (words.text("kind")) {
    case "exited":
      return { kind: "exited", exit_code: exit_code ?? 0 };
    case "signal":
      return { kind: "signal", signal: signal ?? "KILL" };
    case "timed_out":
      return { kind: "timed_out", exit_code, signal };
    case "oom":
      return {
        kind: "resource_exhausted",
        resource: "memory",
        limit_bytes: words.number("limit", 1) ?? null,
        peak_bytes: words.number("peak", 1) ?? null,
      };
    case "launch_failed":
      return {
        kind: "launch_failed",
        reason: (words.text("reason") ?? "other") as LaunchFailure,
        detail: (words.text("detail") ?? "").replaceAll("_", " "),
      };
    default:
      return { kind: "unknown" };
  }
}
