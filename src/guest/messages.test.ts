import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../core/fault.ts";
import { makeId } from "../core/ids.ts";
import { parseGuestMessage } from "./messages.ts";

const command_id = makeId("command", 1, new Uint8Array(10));
const payload = new Uint8Array([1, 2, 3]);
const parse = (header: unknown): unknown =>
  parseGuestMessage({ header: new TextEncoder().encode(JSON.stringify(header)), payload });

test("output is taken over with its bytes", () => {
  const header = { type: "output", command_id, offset: 7, stream: "stderr", at_ms: 1 };
  expect(parse(header)).toEqual({ ...header, payload });
});

test("what a guest says is refused when any part of it is not as agreed", () => {
  const output = { type: "output", command_id, offset: 0, stream: "stdout", at_ms: 1 };
  const end = { kind: "exited", exit_code: 0 };
  const usage = { cpu_ms: 1, memory_peak_bytes: null, oom_kills: 0 };
  const ended = {
    type: "ended",
    command_id,
    end,
    usage,
    at_ms: 1,
    output_bytes: 0,
    signalled: null,
  };
  expect(parse(ended)).toEqual(ended);
  const refused: unknown[] = [
    null,
    [],
    "ready",
    {},
    { type: "reboot_host" },
    { type: "toString" },
    { ...output, command_id: "cmd_../../etc/passwd" },
    { ...output, command_id: `${command_id}\n` },
    { ...output, offset: -1 },
    { ...output, offset: 0.5 },
    { ...output, offset: 1e300 },
    { ...output, stream: "stdin" },
    { ...ended, end: { kind: "exited", exit_code: 256 } },
    { ...ended, end: { kind: "signal", signal: "K".repeat(17) } },
    { ...ended, end: { kind: "launch_failed", reason: "not_found", detail: "x".repeat(1001) } },
    { ...ended, signalled: "SIGKILL" },
    { type: "pong", id: "1", time_ms: 1 },
    { type: "signal_done", command_id, request_id: "r".repeat(65), delivered: true },
    { type: "hello", protocol: 1, guest_boot_id: "x", version: "1", uptime_ms: 1 },
  ];
  for (const header of refused) expect(() => parse(header)).toThrow(Fault);
});

test("no bytes at all make it fail by anything but a fault", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array(),
        fc.json().map((text) => Buffer.from(text)),
      ),
      (header) => {
        expect(() => parseGuestMessage({ header, payload })).toThrow(Fault);
      },
    ),
  );
});
