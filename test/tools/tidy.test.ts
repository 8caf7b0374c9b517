import { expect, test } from "bun:test";
import { join } from "node:path";
import { plant } from "./trees.ts";

const head = "/** What it is. */\n";
const lines = (count: number): string => "// one more\n".repeat(count);
const slash = "/";

/** Each breach in a tree of its own kind of file: where, what it holds, what tidy says. */
const breaches: readonly (readonly [string, string, string, string])[] = [
  [
    "an arrow that points up",
    "src/sandboxes/up.ts",
    'import { x } from "../commands/x.ts";',
    "sandboxes must not import commands/x.ts",
  ],
  [
    "an implementation in a noun",
    "src/sandboxes/real.ts",
    'import { boot } from "../vmm/qemu/boot.ts";',
    "sandboxes must not import vmm/qemu/boot.ts",
  ],
  [
    "a value where only a type may be had",
    "src/sandboxes/time.ts",
    'import { systemClock } from "../system/clock.ts";',
    "sandboxes must not import system/clock.ts",
  ],
  [
    "an import() across an arrow",
    "src/core/lazy.ts",
    'export const load = () => import("../api/app.ts");',
    "core must not import api/app.ts",
  ],
  ["a folder without a row", "src/elsewhere/a.ts", "", "no row in scripts/arrows.ts"],
  [
    "test code in the product",
    "src/core/fake.ts",
    'import { x } from "../../test/tools/x.ts";',
    "src must not import test/tools/x.ts",
  ],
  ["a barrel by name", "src/core/index.ts", "", "a barrel"],
  ["a barrel by content", "src/core/all.ts", 'export * from "./fault.ts";', "a barrel"],
  [
    "a cycle",
    "src/core/cycle.ts",
    'import { b } from "./cycle2.ts";\nexport const a = () => b;',
    "a cycle: src/core/cycle.ts → src/core/cycle2.ts → src/core/cycle.ts",
  ],
  ["Date.now", "src/core/a1.ts", "export const now = () => Date.now();", "Date.now is banned"],
  ["new Date()", "src/core/a2.ts", "export const now = () => new Date();", "new Date() is banned"],
  ["a timer", "src/core/a3.ts", "export const f = () => setTimeout(f, 1);", "setTimeout is banned"],
  ["a timer handed on", "src/core/a4.ts", "const later = setTimeout;", "setTimeout is banned"],
  ["a process", "src/core/a5.ts", 'Bun.spawn(["true"]);', "Bun.spawn is banned"],
  [
    "the process module",
    "src/core/a6.ts",
    'import { spawn } from "node:child_process";',
    "node:child_process is banned",
  ],
  ["the environment", "src/core/a7.ts", "export const f = process.env.HOME;", "process.env is"],
  ["the network", "src/core/a8.ts", 'export const f = () => fetch("x");', "fetch is banned"],
  ["the console", "src/core/a9.ts", 'console.log("x");', "console.log is banned"],
  ["chance", "src/core/a10.ts", "export const f = () => Math.random();", "Math.random is banned"],
  ["a let", "src/core/s1.ts", "export let count = 0;", "state of the module"],
  ["a map", "src/core/s2.ts", "const seen = new Map<string, string>();", "state of the module"],
  ["a list", "src/core/s3.ts", 'export const names = ["a"];', "state of the module"],
  ["a static", "src/core/s4.ts", "export class A { static count = 0; }", "state of the module"],
  ["an empty catch", "src/core/e1.ts", "try { f(); } catch {}", "an empty catch"],
  ["as any", "src/core/e2.ts", "export const x = 1 as any;", '"as any" hides'],
  [
    "a decision by an error's text",
    "src/core/e3.ts",
    'export const f = (e: Error) => e.message.includes("x");',
    "decides by an error's text",
  ],
  ["an empty name", "src/core/n1.ts", "export class VmManager {}", '"Manager" in VmManager'],
  ["a long file", "src/core/z1.ts", lines(300), "301 lines, over 300"],
  ["a long test file", "test/z2.test.ts", lines(401), "401 lines, over 400"],
  [
    "a long function",
    "src/core/z3.ts",
    `export function f() {\n${lines(59)}}`,
    "a function of 61 lines, over 60",
  ],
  ["many parameters", "src/core/z4.ts", "export const f = (a, b, c, d, e) => a;", "5 parameters"],
  ["a wide line", "src/core/z5.ts", `// ${"x".repeat(118)}`, "121 columns, over 120"],
  ["a wide line of C", "src/guest/z.c", "x".repeat(121), "121 columns, over 120"],
  ["no sense", "src/core/x1.ts", "export const = ;", "src/core/x1.ts: "],
  ["a home", "scripts/p1.ts", `const a = "${slash}root${slash}x";`, "a path of one machine"],
  ["a user's home", "README.md", `See ${slash}home${slash}alice/x.`, "a path of one machine"],
  ["a registry", ".npmrc", `registry=https://registry.${"npmjs"}.org`, "a package registry's host"],
  [
    "a lock that lets npm build",
    "package-lock.json",
    '"node_modules/better-sqlite3": { "version": "1" }',
    'better-sqlite3 needs "gypfile": false',
  ],
  ["a cited file", "docs/a.md", "It is in `src/core/gone.ts`.", "cites src/core/gone.ts"],
  ["a broken link", "docs/b.md", "[the words](gone.md)", "cites docs/gone.md"],
  [
    "a promise whose test is not there",
    "docs/promises.md",
    '- It holds. `test/z2.test.ts` "it holds"',
    'test/z2.test.ts has no test "it holds"',
  ],
];

const others = {
  "src/core/bare.ts": "export const a = 1;",
  "src/core/cycle2.ts": `${head}import { a } from "./cycle.ts";\nexport const b = () => a;`,
  "src/main.ts": `${head}import "./cli/run.ts";`,
  "src/cli/run.ts": `${head}import { z } from "zod";`,
};

function tidy(root: string): { code: number; said: string } {
  Bun.spawnSync(["git", "init", "-q"], { cwd: root });
  const script = join(import.meta.dir, "../../scripts/tidy.ts");
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, script, root]);
  return { code: exitCode, said: stderr.toString() };
}

function breachedTree(): string {
  const planted = breaches.map(([, path, text]) => [
    path,
    path.startsWith("src/") && path.endsWith(".ts") ? head + text : text,
  ]);
  using tree = plant({ ...Object.fromEntries(planted), ...others });
  const { code, said } = tidy(tree.root);
  expect(code).toBe(1);
  return said;
}

const said = breachedTree();

test.each(breaches)("tidy refuses %s", (_, path, __, words) => {
  expect(said.split("\n").filter((line) => line.startsWith(path))).toContainEqual(
    expect.stringContaining(words),
  );
});

test("tidy refuses a file without a head comment", () => {
  expect(said).toContain("src/core/bare.ts: no head comment");
});

test("tidy refuses a start that loads what only serve needs, and names the trail", () => {
  expect(said).toContain("src/cli/run.ts: loads zod (src/main.ts → src/cli/run.ts)");
});

test("tidy lets a clean tree pass", () => {
  using tree = plant({
    "src/core/fault.ts": `${head}export const kinds = ["a", "b"] as const;\n`,
    "src/sandboxes/start.ts": `${head}import type { Clock } from "../system/clock.ts";
import type { Vmm } from "../vmm/vmm.ts";
const phases: readonly string[] = ["a"];
export const f = (clock: Clock, vmm: Vmm) => [clock.now(), vmm, phases, "Date.now() in a text"];\n`,
    "src/system/clock.ts": `${head}export const systemClock = { now: () => Date.now() };\n`,
    "test/a.test.ts": 'test("it holds", () => {});\nlet count = 0;\n',
    "docs/promises.md": 'Held: `test/a.test.ts` "it holds", by [a](../src/core/fault.ts).\n',
  });
  expect(tidy(tree.root)).toEqual({ code: 0, said: "" });
});
