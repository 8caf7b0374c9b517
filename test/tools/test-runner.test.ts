import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plant } from "./trees.ts";

const good = `import { expect, test } from "bun:test";
test("one and one are two", () => expect(1 + 1).toBe(2));
test("brackets </testcase> & <failure/> in a name", () => {});
test.skip("is skipped, for want of a moon", () => {});
`;
const bun = process.execPath;

/** One stage that runs the tests of `src`; others beside it. */
function plan(...others: readonly object[]): string {
  const argv = [bun, "test", "--reporter=junit", "--reporter-outfile=reports/unit.xml", "./src/"];
  const unit = { name: "unit", argv, report: "reports/unit.xml", folders: ["src"] };
  return JSON.stringify([unit, ...others].map((each) => ({ timeoutMs: 60_000, ...each })));
}

function run(files: Readonly<Record<string, string>>, ...others: readonly object[]) {
  using tree = plant({ "plan.json": plan(...others), ...files });
  const script = join(import.meta.dir, "../../scripts/test.ts");
  const argv = [bun, script, "--root", tree.root, "--plan", join(tree.root, "plan.json")];
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv, { cwd: tree.root });
  const lines = stdout.toString().trimEnd().split("\n");
  return { exitCode, line: lines.at(-1), lines, stderr: stderr.toString() };
}

const withGood = { "src/good.test.ts": good };

test("a good tree is green, and a skip is listed with its reason", () => {
  const { exitCode, line, lines } = run({ "src/good.test.ts": good });
  expect([exitCode, line]).toEqual([0, "2 passed, 0 failed, 1 skipped"]);
  expect(lines).toContain("skipped: unit: is skipped, for want of a moon (src/good.test.ts)");
});

test("a failed case turns the run red, and its words are shown", () => {
  const bad =
    'import { test } from "bun:test"; test("b", () => { throw new Error("so </it> is"); });';
  const { exitCode, line, lines } = run({ ...withGood, "src/bad.test.ts": bad });
  expect([exitCode, line]).toEqual([1, "2 passed, 1 failed, 1 skipped"]);
  expect(lines.join("\n")).toContain("so </it> is");
});

test("a broken import turns the run red, though Bun's report does not speak of the file", () => {
  const broken = 'import { a } from "./gone.ts"; import { test } from "bun:test"; test("a", a);';
  const { exitCode, line, lines } = run({ ...withGood, "src/broken.test.ts": broken });
  // The stage ended with 1 though no case failed, and the file has no case.
  expect([exitCode, line]).toEqual([1, "2 passed, 2 failed, 1 skipped"]);
  expect(lines).toContain("failed: src/broken.test.ts has no case in any report");
});

test("an early exit with code 0 turns the run red", () => {
  const early = 'import { test } from "bun:test"; test("a", () => process.exit(0));';
  const { exitCode, line, lines } = run({ ...withGood, "src/early.test.ts": early });
  expect([exitCode, line]).toEqual([1, "0 passed, 3 failed, 0 skipped"]);
  expect(lines).toContain("failed: unit left no report (it ended with 0)");
});

test("a test file that holds no test turns the run red", () => {
  const { exitCode, line } = run({ ...withGood, "src/hollow.test.ts": "export const a = 1;" });
  expect([exitCode, line]).toEqual([1, "2 passed, 1 failed, 1 skipped"]);
});

test("a test file that no stage runs turns the run red", () => {
  const { exitCode, lines } = run({ ...withGood, "elsewhere/deep/lost.test.ts": good });
  expect(exitCode).toBe(1);
  expect(lines).toContain("failed: elsewhere/deep/lost.test.ts has no case in any report");
});

test("a stage that crashes, or is not there at all, turns the run red", () => {
  const crashed = { name: "crashed", argv: ["sh", "-c", "kill -SEGV $$"] };
  const absent = { name: "absent", argv: ["no-such-program"] };
  const { exitCode, line, lines } = run(withGood, crashed, absent);
  expect([exitCode, line]).toEqual([1, "2 passed, 2 failed, 1 skipped"]);
  expect(lines).toContain("failed: crashed ended with 139");
});

test("a stage that fails after all its cases passed turns the run red", () => {
  const xml =
    '<testsuites><testsuite file="src/good.test.ts"><testcase name="a"/></testsuite></testsuites>';
  const argv = ["sh", "-c", `echo '${xml}' > reports/late.xml; exit 3`];
  const { exitCode, line } = run(withGood, { name: "late", argv, report: "reports/late.xml" });
  expect([exitCode, line]).toEqual([1, "3 passed, 1 failed, 1 skipped"]);
});

test("a report that is cut short turns the run red", () => {
  const argv = ["sh", "-c", `echo '<testsuites><testsuite><testcase name="a"/>' > reports/cut.xml`];
  const { exitCode, line } = run(withGood, { name: "cut", argv, report: "reports/cut.xml" });
  expect([exitCode, line]).toEqual([1, "3 passed, 1 failed, 1 skipped"]);
});

test("a report of an earlier run proves nothing", () => {
  const { exitCode, lines } = run(
    { ...withGood, "reports/old.xml": '<testsuites><testcase name="a"/></testsuites>' },
    { name: "old", argv: ["true"], report: "reports/old.xml" },
  );
  expect(exitCode).toBe(1);
  expect(lines).toContain("failed: old left no report (it ended with 0)");
});

test("a stage over its time limit is ended with everything it started, and counts as failed", () => {
  using tree = plant({ ...withGood, "plan.json": "" });
  const pidFile = join(tree.root, "pid");
  const argv = ["sh", "-c", `sleep 600 & echo $! > ${pidFile}; wait`];
  writeFileSync(
    join(tree.root, "plan.json"),
    plan({ name: "slow", argv, timeoutMs: 300, isShown: true }),
  );
  const script = join(import.meta.dir, "../../scripts/test.ts");
  const { exitCode, stdout } = Bun.spawnSync(
    [bun, script, "--root", tree.root, "--plan", join(tree.root, "plan.json"), "--stage", "slow"],
    { cwd: tree.root },
  );
  expect(exitCode).toBe(1);
  expect(stdout.toString()).toContain("over its time limit of 0.3 s");
  expect(stdout.toString().trimEnd().split("\n").at(-1)).toBe("0 passed, 1 failed, 0 skipped");
  expect(isAlive(readFileSync(pidFile, "utf8").trim())).toBe(false);
});

/** A process that ended and still waits to be reaped counts as ended. */
function isAlive(pid: string): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}
