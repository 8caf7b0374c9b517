/**
 * `bun run mutate [words of a name]`: breaks a copy of the tree in one way after the other and runs
 * the tests on it. Fails when a mutant survives, or when what it replaces is not there any more.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Mutant, mutants } from "./mutants.ts";

const timeoutMs = 120_000;
const seeds = "60";
const tests = [
  "./src/core",
  "./src/db",
  "./src/workflow",
  "./src/commands",
  "./src/sandboxes",
  "./test/simulation/stories.test.ts",
  "./test/simulation/every-call.test.ts",
  "./test/simulation/lives.test.ts",
];

interface Verdict {
  mutant: Mutant;
  /** The test that noticed; undefined: it survived. */
  killer: string | undefined;
  seconds: number;
}

const wanted = process.argv.slice(2).join(" ");
const queue = mutants.filter(({ name }) => name.includes(wanted));
const verdicts: Verdict[] = [];
const workers = Array.from({ length: Math.min(2, availableParallelism()) }, work);
await Promise.all(workers);
const survivors = verdicts.filter(({ killer }) => killer === undefined);
console.log(`${verdicts.length - survivors.length} mutants killed, ${survivors.length} survived`);
process.exit(survivors.length > 0 ? 1 : 0);

async function work(): Promise<void> {
  for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
    const verdict = await judge(mutant);
    verdicts.push(verdict);
    const { killer, seconds } = verdict;
    const end = killer === undefined ? "SURVIVED" : `killed by "${killer}"`;
    console.log(`${seconds.toFixed(0).padStart(4)} s  ${mutant.name}: ${end}`);
  }
}

async function judge(mutant: Mutant): Promise<Verdict> {
  const tree = mkdtempSync(join(tmpdir(), "holdfast-mutant-"));
  const began = performance.now();
  try {
    for (const each of ["src", "test", "scripts", "package.json", "settings.example.toml"])
      cpSync(each, join(tree, each), { recursive: true });
    symlinkSync(resolve("node_modules"), join(tree, "node_modules"));
    infect(tree, mutant);
    const killer = await firstFailure(tree);
    return { mutant, killer, seconds: (performance.now() - began) / 1_000 };
  } finally {
    rmSync(tree, { recursive: true, force: true });
  }
}

function infect(tree: string, { name, file, edits }: Mutant): void {
  const path = join(tree, file);
  let text = readFileSync(path, "utf8");
  for (const [from, to] of edits) {
    if (text.split(from).length !== 2)
      throw new Error(`"${name}" no longer applies: ${file} does not hold once: ${from}`);
    text = text.replace(from, () => to);
  }
  writeFileSync(path, text);
}

/** Runs file by file, the quickest first, and stops at the first that fails. */
async function firstFailure(tree: string): Promise<string | undefined> {
  for (const each of tests) {
    const child = Bun.spawn(
      [process.execPath, "test", "--bail", "--timeout", String(timeoutMs), each],
      {
        cwd: tree,
        env: { ...process.env, SEEDS: seeds },
        stdout: "ignore",
        stderr: "pipe",
        timeout: timeoutMs,
        killSignal: "SIGKILL",
      },
    );
    const output = await new Response(child.stderr).text();
    if ((await child.exited) === 0) continue;
    return output.match(/^\(fail\) (.*?)(?: \[[\d.]+ms\])?$/m)?.[1] ?? `${each} as a whole`;
  }
  return undefined;
}
