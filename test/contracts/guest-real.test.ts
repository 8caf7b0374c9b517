import { expect, test } from "bun:test";
import { guestContract, Listener, newCommandId } from "./guest.contract.ts";
import { begin, withListener } from "./guest-real.ts";

guestContract("the real guest part", () => begin(), {
  copies: () => ["cat"],
  ignoresTerm: () => ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"],
  prints: (bytes) => ["head", "-c", String(bytes), "/dev/zero"],
  exits: (code) => ["sh", "-c", `exit ${code}`],
  sleeps: (seconds) => ["sleep", String(seconds)],
  user: "root",
});

test("what could not be launched says why", () =>
  withListener(async (listener) => {
    const cases = [
      { argv: ["/no/such/program"], reason: "not_found" },
      { argv: ["/etc/passwd"], reason: "not_executable" },
      { argv: ["true"], more: { cwd: "/no/such/place" }, reason: "bad_cwd" },
      { argv: ["true"], more: { user: "nobody-here" }, reason: "bad_user" },
    ];
    for (const { argv, more, reason } of cases) {
      const id = newCommandId();
      await listener.launch(id, argv, more ?? {});
      expect((await listener.ended(id)).end).toMatchObject({ kind: "launch_failed", reason });
    }
  }));

test("a child that holds the pipes does not delay the end of its command", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    await listener.launch(id, ["sh", "-c", "sleep 600 & echo started"]);
    expect((await listener.ended(id)).end).toEqual({ kind: "exited", exit_code: 0 });
    expect(listener.output.get(id)?.toString()).toBe("started\n");
  }));

test("a command is ended when its time has passed", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    await listener.launch(id, ["sleep", "600"], { timeout_ms: 300 });
    expect((await listener.ended(id)).end).toMatchObject({ kind: "timed_out", signal: "TERM" });
  }));

test("30,000 lines arrive byte-exact over 20 connections and 3 kills of the guest part", () =>
  withListener(async (first, fixture) => {
    const id = newCommandId();
    await first.launch(id, ["seq", "1", "30000"]);
    let listener = first;
    for (let connection = 0; connection < 20; connection++) {
      await listener.until((message) => message.type === "output" || message.type === "ended");
      if (connection % 7 === 6) await fixture.restart();
      listener = new Listener(await fixture.guests.open(fixture.ref), listener.output);
      await listener.greet();
    }
    await listener.ended(id);
    const lines = Array.from({ length: 30_000 }, (_, index) => `${index + 1}\n`).join("");
    expect(listener.output.get(id)?.toString() === lines).toBe(true);
  }));

test("a program that writes more than is kept waits until the host has taken some", () =>
  withListener(async (listener) => {
    const id = newCommandId();
    await listener.launch(id, ["head", "-c", "30000000", "/dev/zero"]);
    expect((await listener.ended(id)).output_bytes).toBe(30_000_000);
    expect(listener.output.get(id)?.length).toBe(30_000_000);
  }));
