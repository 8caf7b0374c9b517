import { expect, test } from "bun:test";
import type { CommandView } from "../api/command-view.ts";
import { exitCodeOf, verdictOf } from "./follow.ts";

const ended = (end: Partial<CommandView>): CommandView =>
  ({
    id: "cmd_1",
    exit_code: null,
    signal: null,
    launch_failure: null,
    message: "",
    ...end,
  }) as CommandView;

test("every end of a command has its exit code", () => {
  const failed = (reason: string) => ({ reason, detail: "" });
  const codes: [Partial<CommandView>, number][] = [
    [{ state: "exited", exit_code: 0 }, 0],
    [{ state: "exited", exit_code: 42 }, 42],
    [{ state: "exited", signal: "SEGV" }, 139],
    [{ state: "interrupted", signal: "TERM" }, 143],
    [{ state: "interrupted", exit_code: 3 }, 3],
    [{ state: "timed_out", signal: "KILL" }, 124],
    [{ state: "launch_failed", launch_failure: failed("not_found") }, 127],
    [{ state: "launch_failed", launch_failure: failed("bad_cwd") }, 126],
    [{ state: "not_launched" }, 125],
    [{ state: "resource_exhausted" }, 137],
    [{ state: "infrastructure_lost" }, 75],
    [{ state: "unknown" }, 75],
  ];
  for (const [end, code] of codes) expect([end, exitCodeOf(ended(end))]).toEqual([end, code]);
});

test("who may have to check is told so, and nobody else", () => {
  expect(verdictOf(ended({ state: "exited", exit_code: 1 }))).toBeUndefined();
  expect(verdictOf(ended({ state: "unknown" }))).toContain("may have run");
  expect(verdictOf(ended({ state: "not_launched" }))).toContain("never ran");
});
