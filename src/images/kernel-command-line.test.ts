import { expect, test } from "bun:test";
import { kernelCommandLine } from "./kernel-command-line.ts";

const identity = { hostname: "demo", machineId: "0".repeat(32) };

test("only an emulated guest is trimmed, and every guest knows its name", () => {
  const real = kernelCommandLine({ ...identity, emulated: false });
  expect(real).toContain("systemd.hostname=demo");
  expect(real).toContain(`systemd.machine_id=${"0".repeat(32)}`);
  expect(real).not.toContain("holdfast.trim");
  expect(real).not.toContain("mitigations=off");
  expect(kernelCommandLine({ ...identity, emulated: true })).toContain("holdfast.trim");
});

test("it fits into what a kernel takes (2048 bytes on x86)", () => {
  const longest = { hostname: "h".repeat(63), machineId: "0".repeat(32), emulated: true };
  expect(kernelCommandLine(longest).length).toBeLessThan(2048);
});
