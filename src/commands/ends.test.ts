import { expect, test } from "bun:test";
import type { CommandEnd, SignalName } from "../guest/guest.ts";
import { phaseReasons } from "../sandboxes/sandbox.ts";
import type { CommandRow } from "./command.ts";
import { type EndReport, endWith, moveOf } from "./ends.ts";

const usage = { cpu_ms: 5, memory_peak_bytes: 7, oom_kills: 0 };
const sent = { id: "cmd_1", state: "running", kill_request: null, started_at_ms: 1 };
const row = (more: Partial<CommandRow> = {}): CommandRow => ({ ...sent, ...more }) as CommandRow;

function report(end: CommandEnd, signalled: SignalName | null = null): EndReport {
  const rest = { command_id: "cmd_1", usage, at_ms: 2, output_bytes: 0 };
  return { type: "ended", end, signalled, ...rest };
}

test("a program that ends by itself has exited, by its code or its signal", () => {
  const exited = moveOf(row(), report({ kind: "exited", exit_code: 3 }), 9);
  expect(exited).toMatchObject({ event: "exited", nowMs: 9 });
  expect(exited.changes).toMatchObject({ exit_code: 3, signal: null, cpu_ms: 5 });
  const crashed = moveOf(row(), report({ kind: "signal", signal: "SEGV" }), 9);
  expect(crashed).toMatchObject({ event: "exited", changes: { signal: "SEGV" } });
  const killedBySelf = moveOf(row(), report({ kind: "signal", signal: "TERM" }), 9);
  expect(killedBySelf.event).toBe("exited");
});

test("a program that our signal ended was interrupted, and the reason says by what", () => {
  const end = { kind: "signal", signal: "TERM" } as const;
  expect(moveOf(row(), report(end, "TERM"), 9)).toMatchObject({
    event: "interrupted",
    reason: "stopped",
  });
  const asked = row({ kill_request: "req_1" });
  expect(moveOf(asked, report(end, "TERM"), 9).reason).toBe("killed");
  const obeyed = report({ kind: "exited", exit_code: 0 }, "INT");
  expect(moveOf(asked, obeyed, 9)).toMatchObject({ event: "interrupted", reason: "killed" });
});

test("a harmless signal does not make an end an interruption, nor hide one", () => {
  const asked = row({ kill_request: "req_1" });
  const own = report({ kind: "exited", exit_code: 0 }, "WINCH");
  expect(moveOf(asked, own, 9).event).toBe("exited");
  const ours = report({ kind: "signal", signal: "KILL" }, "WINCH");
  expect(moveOf(asked, ours, 9).event).toBe("interrupted");
});

test("every other end is told as what it was", () => {
  const cases: [CommandEnd, string][] = [
    [{ kind: "launch_failed", reason: "not_found", detail: "x" }, "launchFailed"],
    [{ kind: "timed_out", exit_code: null, signal: "KILL" }, "timedOut"],
    [
      { kind: "resource_exhausted", resource: "memory", limit_bytes: 1, peak_bytes: 1 },
      "exhausted",
    ],
    [{ kind: "unknown" }, "untold"],
  ];
  for (const [end, event] of cases)
    expect(moveOf(row(), report(end, "TERM"), 9).event as string).toBe(event);
  const [memory] = cases.slice(2);
  const details = moveOf(row(), report(memory?.[0] ?? { kind: "unknown" }), 9).changes?.end_details;
  expect(JSON.parse(details ?? "")).toEqual({ resource: "memory", limit_bytes: 1, peak_bytes: 1 });
});

const reasons = Object.keys(phaseReasons) as (keyof typeof phaseReasons)[];

test("when its run ends, what was sent and not reported is unknown, whatever the reason", () => {
  for (const reason of reasons)
    for (const bootsAgain of [true, false])
      expect(endWith(row({ state: "launching" }), { reason, bootsAgain })?.event).toBe("untold");
});

test("when its run ends, what waits was never launched, or goes on waiting for the next boot", () => {
  for (const reason of reasons) {
    const queued = row({ state: "queued" });
    expect(endWith(queued, { reason, bootsAgain: false })?.event).toBe("drop");
    expect(endWith(queued, { reason, bootsAgain: true })).toBeUndefined();
  }
});

test("when its run ends, what ran was interrupted by a wish and lost by anything else", () => {
  const running = row({ state: "running" });
  const wished = ["stopped_on_request", "deleted"];
  for (const reason of reasons)
    expect(endWith(running, { reason, bootsAgain: false })?.event).toBe(
      wished.includes(reason) ? "interrupted" : "lost",
    );
});
