import { expect, test } from "bun:test";
import { Fault } from "../core/fault.ts";
import { GiB, MiB } from "../core/units.ts";
import { defaultSizes } from "../sandboxes/size.ts";
import { exampleText, parseSettings } from "./settings.ts";

test("the example is the defaults, and has the sizes that the nouns know", () => {
  const defaults = parseSettings("", "nothing");
  expect(parseSettings(exampleText, "example")).toEqual(defaults);
  const sizes = defaults.sizes.map(({ name, vcpus, memory_mib, disk_gib }) => ({
    name,
    vcpus,
    memoryBytes: memory_mib * MiB,
    diskBytes: disk_gib * GiB,
  }));
  expect(sizes).toEqual([...defaultSizes]);
});

test("what is set changes only that", () => {
  const settings = parseSettings("[listen]\nport = 9000\n", "file");
  expect(settings.listen).toEqual({ ...parseSettings("", "x").listen, port: 9000 });
});

test("a setting that is unknown, of another type or out of range is named", () => {
  for (const [text, name] of [
    ["colour = 1", "colour"],
    ['[listen]\nport = "x"', "listen.port"],
    ["[limits]\nsandboxes_total = 0", "limits.sandboxes_total"],
    ["sizes = []", "sizes"],
    ["[", "TOML"],
  ] as const) {
    const parse = () => parseSettings(text, "settings.toml");
    expect(parse).toThrow(Fault);
    expect(parse).toThrow(name);
  }
});
