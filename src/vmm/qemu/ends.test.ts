import { expect, test } from "bun:test";
import { type EndFacts, endOf, parseEndRecord } from "./ends.ts";

const shutdown = (reason: string): string =>
  `{"return": {}}\n{"timestamp": {}, "event": "SHUTDOWN", "data": {"guest": true, "reason": "${reason}"}}\n`;
const exited = (status: number, killed = false): EndFacts["record"] => ({
  kind: "exited",
  status,
  killed,
});
const facts = (some: Partial<EndFacts>): EndFacts => ({
  record: exited(0),
  log: "",
  serial: "",
  wasReady: true,
  ...some,
});

const cases: [string, Partial<EndFacts>, string][] = [
  ["a guest that powered off", { log: shutdown("guest-shutdown") }, "guest_shutdown"],
  ["a guest that reset", { log: shutdown("guest-reset") }, "guest_reboot"],
  ["a guest whose device told of a panic", { log: shutdown("guest-panic") }, "guest_panic"],
  [
    "a guest that reset after its kernel told of a panic",
    { log: shutdown("guest-reset"), serial: "[ 1.0] Kernel panic - not syncing: no init" },
    "guest_panic",
  ],
  [
    "a guest that printed as if it panicked, and powered off",
    { log: shutdown("guest-shutdown"), serial: "Kernel panic - not syncing" },
    "guest_shutdown",
  ],
  ["a kill", { record: exited(137, true) }, "killed"],
  [
    "a kill that came when the guest was done",
    { ...facts({ log: shutdown("guest-shutdown") }), record: exited(137, true) },
    "guest_shutdown",
  ],
  ["a kill that nobody saw", { record: { kind: "lost", killed: true, why: "gone" } }, "killed"],
  ["an end that nobody saw", { record: { kind: "lost", killed: false, why: "gone" } }, "died"],
  ["a signal from elsewhere", { record: exited(137) }, "died"],
  ["a host that shuts down", { log: shutdown("host-signal") }, "died"],
  ["a QEMU that gave up later", { record: exited(1), log: "qemu: no\n" }, "died"],
  [
    "a QEMU that refused",
    { record: exited(1), log: "qemu: no\n", wasReady: false },
    "launch_failed",
  ],
  ["a keeper that refused", { record: { kind: "refused", words: "taken" } }, "launch_failed"],
  ["a broken log", { record: exited(139), log: '{"event": "SHUTD' }, "died"],
];

for (const [what, some, how] of cases)
  test(`${what} ends as ${how}`, () => {
    expect(endOf(facts(some)).how).toBe(how as never);
  });

test("a refusal has QEMU's words, and not its events", () => {
  const log = `{"QMP": {}}\nqemu: could not load kernel\n`;
  const { detail } = endOf(facts({ record: exited(1), log, wasReady: false }));
  expect(detail).toBe("qemu: could not load kernel");
});

test("records are read as they are written, and nothing else is one", () => {
  expect(parseEndRecord("exited 137 yes\n")).toEqual(exited(137, true));
  expect(parseEndRecord("lost no the machine restarted\n")).toEqual({
    kind: "lost",
    killed: false,
    why: "the machine restarted",
  });
  expect(parseEndRecord("refused another VM\n")).toEqual({ kind: "refused", words: "another VM" });
  for (const text of ["", "exited", "exited 1", "exited x no", "lost"])
    expect(parseEndRecord(text)).toBeUndefined();
});
