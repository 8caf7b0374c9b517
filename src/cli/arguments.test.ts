import { expect, test } from "bun:test";
import { parseArguments, UsageError } from "./arguments.ts";

const flags = {
  detach: { kind: "switch", short: "d" },
  env: { kind: "list", short: "e" },
  workdir: { kind: "text", short: "w" },
} as const;

test("flags are taken by long and short name, with a value after it or after =", () => {
  const parsed = parseArguments(["-d", "--env=A=1", "-e", "B=2", "-w", "/srv", "name"], flags);
  expect(parsed.flags).toEqual({ detach: true, env: ["A=1", "B=2"], workdir: "/srv" });
  expect(parsed.words).toEqual(["name"]);
});

test("a program's own flags stay its own, with and without --", () => {
  const program = ["ls", "-d", "--env", "--", "x"];
  expect(parseArguments(["name", ...program], flags, 1).words).toEqual(["name", ...program]);
  expect(parseArguments(["-d", "name", "--", ...program], flags, 1)).toEqual({
    flags: { detach: true, env: [], workdir: undefined },
    words: ["name", ...program],
  });
});

test("a flag that is unknown, lacks its value or has one too many is refused", () => {
  for (const argv of [["--bogus"], ["-x"], ["--workdir"], ["--detach=yes"]])
    expect(() => parseArguments(argv, flags)).toThrow(UsageError);
});

test("a lone dash is a word", () => {
  expect(parseArguments(["-"], flags).words).toEqual(["-"]);
});
