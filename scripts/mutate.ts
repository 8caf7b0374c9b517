/**
 * `bun run mutate [words of a name]`: breaks a copy of the tree in one way after the other and runs
 * the tests on it. Fails when a mutant survives, when what it replaces is not there any more, and
 * when the tests fail on the tree as it is. It never changes the tree itself.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Mutant, mutants } from "./mutants.ts";

/** Of one round of tests; several times what they take unbroken on a busy machine. */
const timeoutMs = 300_000;
const nameWidth = Math.max(...mutants.map(({ name }) => name.length));

interface Round {
  readonly paths: readonly string[];
  readonly seeds?: string;
}

const simulation = (name: string): string => `./test/simulation/${name}.test.ts`;

/** The quickest first; a mutant is dead at the first that fails. */
const rounds: readonly Round[] = [
  { paths: ["core", "db", "workflow", "commands", "sandboxes"].map((name) => `./src/${name}`) },
  { paths: ["stories", "runs", "hostile", "retention"].map(simulation) },
  { paths: [simulation("lives")], seeds: "20" },
  { paths: [simulation("every-call")] },
  { paths: [simulation("lives")], seeds: "100" },
];

interface Verdict {
  name: string;
  /** The test that noticed; undefined: it survived. */
  killer: string | undefined;
}

const wanted = process.argv.slice(2).join(" ");
const queue = mutants.filter(({ name }) => name.includes(wanted));
const verdicts: Verdict[] = [];
const began = performance.now();
const lanes = Math.min(2, availableParallelism());
const unbroken = judge(undefined).then(async (failure) => {
  if (failure) throw new Error(`the tests fail without any mutant: ${failure}`);
  if (lanes > 1) await work();
});
await Promise.all([unbroken, work()]);
const survivors = verdicts.filter(({ killer }) => killer === undefined);
const minutes = ((performance.now() - began) / 60_000).toFixed(1);
const killed = verdicts.length - survivors.length;
console.log(`${killed} mutants killed, ${survivors.length} survived, ${minutes} min`);
process.exit(survivors.length > 0 || verdicts.length === 0 ? 1 : 0);

async function work(): Promise<void> {
  for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
    const from = performance.now();
    const { name } = mutant;
    const killer = await judge(mutant);
    verdicts.push({ name, killer });
    const seconds = ((performance.now() - from) / 1_000).toFixed(0).padStart(4);
    console.log(`${seconds} s  ${name.padEnd(nameWidth)}  ${killer ?? "SURVIVED"}`);
  }
}

/** Runs the tests on a copy of the tree. Returns what noticed the mutant. */
async function judge(mutant: Mutant | undefined): Promise<string | undefined> {
  const tree = mkdtempSync(join(tmpdir(), "holdfast-mutant-"));
  try {
    for (const each of ["src", "test", "scripts", "package.json", "settings.example.toml"])
      cpSync(each, join(tree, each), { recursive: true });
    symlinkSync(resolve("node_modules"), join(tree, "node_modules"));
    if (mutant) infect(tree, mutant);
    return await firstFailure(tree);
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

async function firstFailure(tree: string): Promise<string | undefined> {
  for (const { paths, seeds = "" } of rounds) {
    const options = ["--bail", "--timeout", String(timeoutMs)];
    const child = Bun.spawn([process.execPath, "test", ...options, ...paths], {
      cwd: tree,
      env: { ...process.env, SEEDS: seeds },
      stdout: "ignore",
      stderr: "pipe",
      timeout: timeoutMs,
      killSignal: "SIGKILL",
    });
    const output = await new Response(child.stderr).text();
    if ((await child.exited) === 0) continue;
    if (child.signalCode) return `(hangs) ${paths.join(" ")}`;
    return output.match(/^\(fail\) (.*?)(?: \[[\d.]+ms\])?$/m)?.[1] ?? `(ends) ${paths.join(" ")}`;
  }
  return undefined;
}
