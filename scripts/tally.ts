/**
 * Counts what a test run really showed. Green needs proof: a stage that fails without a failed
 * case, a report that is missing, and a test file without a case in any report each count as failed.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, normalize, relative, resolve } from "node:path";
import { Glob } from "bun";
import type { Stage } from "./stages.ts";

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  /** One line each: what failed, or why something was skipped. */
  remarks: string[];
}

interface Case {
  name: string;
  file: string;
  result: "passed" | "failed" | "skipped";
}

export class Count {
  readonly tally: Tally = { passed: 0, failed: 0, skipped: 0, remarks: [] };
  readonly #filesSeen = new Set<string>();
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  add(stage: Stage, exitCode: number): void {
    if (!stage.report) {
      if (exitCode === 0) this.tally.passed++;
      else this.#fail(`${stage.name} ended with ${exitCode}`);
      return;
    }
    const path = join(this.#root, stage.report);
    if (!existsSync(path)) {
      this.#fail(`${stage.name} left no report (exit code ${exitCode})`);
      return;
    }
    const cases = casesOf(readFileSync(path, "utf8"));
    for (const each of cases) this.#addCase(stage, each);
    const failed = cases.some(({ result }) => result === "failed");
    if (cases.length === 0) this.#fail(`${stage.name} ran no test`);
    else if (exitCode !== 0 && !failed)
      this.#fail(`${stage.name} ended with ${exitCode}, though no case failed`);
  }

  /** Test files on disk that no report speaks of. */
  addUnseen(files: Iterable<string>): void {
    for (const file of files)
      if (!this.#filesSeen.has(normalize(file))) this.#fail(`${file} has no case in any report`);
  }

  #addCase(stage: Stage, { name, file, result }: Case): void {
    this.#filesSeen.add(relative(this.#root, resolve(this.#root, file)));
    this.tally[result]++;
    if (result !== "passed") this.tally.remarks.push(`${result}: ${stage.name}: ${name} (${file})`);
  }

  #fail(remark: string): void {
    this.tally.failed++;
    this.tally.remarks.push(`failed: ${remark}`);
  }
}

/** Every test file of the tree. */
export function testFiles(root: string): string[] {
  return ["src", "test", "scripts"]
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      [...new Glob("**/*.test.{ts,tsx}").scanSync(join(root, folder))].map((each) =>
        join(folder, each),
      ),
    )
    .sort();
}

/** The cases of a junit report as Bun writes it: a testcase element, empty or with its result inside. */
function casesOf(xml: string): Case[] {
  return [...xml.matchAll(/<testcase\b([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)].map((match) => {
    const [attributes, inside] = [match[1] ?? "", match[3] ?? ""];
    const result = /<(failure|error)\b/.test(inside)
      ? "failed"
      : /<skipped\b/.test(inside)
        ? "skipped"
        : "passed";
    return { name: attribute(attributes, "name"), file: attribute(attributes, "file"), result };
  });
}

function attribute(text: string, name: string): string {
  return text.match(new RegExp(`\\b${name}="([^"]*)"`))?.[1] ?? "";
}
