/**
 * Counts what a test run really showed. Green needs proof: a stage that fails without a failed
 * case, a report that is missing, empty or cut short, and a test file without a case in any report
 * each count as failed.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { Glob } from "bun";
import { isUnder, type Stage } from "../stages.ts";
import { type Case, readReport } from "./junit.ts";

export class Tally {
  passed = 0;
  failed = 0;
  skipped = 0;
  /** One line each: what failed, or why something was skipped. */
  readonly remarks: string[] = [];
  readonly #root: string;
  readonly #filesSeen = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Returns whether the stage is green. */
  add(stage: Stage, exitCode: number): boolean {
    const before = this.failed;
    this.#addStage(stage, exitCode);
    return this.failed === before;
  }

  /** Test files that no report speaks of: they hold no test, or could not even be loaded. */
  addUnseen(files: readonly string[]): boolean {
    const unseen = files.filter((file) => !this.#filesSeen.has(file));
    for (const file of unseen) this.#fail(`${file} has no case in any report`);
    return unseen.length === 0;
  }

  get line(): string {
    return `${this.passed} passed, ${this.failed} failed, ${this.skipped} skipped`;
  }

  #addStage(stage: Stage, exitCode: number): void {
    if (!stage.report) {
      if (exitCode === 0) this.passed++;
      else this.#fail(`${stage.name} ended with ${exitCode}`);
      return;
    }
    const path = join(this.#root, stage.report);
    if (!existsSync(path)) {
      this.#fail(`${stage.name} left no report (it ended with ${exitCode})`);
      return;
    }
    const { cases, isWhole } = readReport(readFileSync(path, "utf8"));
    for (const each of cases) this.#addCase(stage, each);
    if (!isWhole) this.#fail(`${stage.name} left a report that is cut short`);
    else if (cases.length === 0) this.#fail(`${stage.name} ran no test`);
    else if (exitCode !== 0 && !cases.some(({ result }) => result === "failed"))
      this.#fail(`${stage.name} ended with ${exitCode}, though no case failed`);
  }

  #addCase(stage: Stage, { name, file, result, why }: Case): void {
    this.#filesSeen.add(relative(this.#root, resolve(this.#root, file)));
    this[result]++;
    if (result === "passed") return;
    this.remarks.push(`${result}: ${stage.name}: ${name} (${file})${why && `: ${why}`}`);
  }

  #fail(remark: string): void {
    this.failed++;
    this.remarks.push(`failed: ${remark}`);
  }
}

/** Every test file of the tree, wherever it lies. */
export function findTestFiles(root: string): string[] {
  const all = new Glob("**/*.test.{ts,tsx}").scanSync({ cwd: root, dot: false });
  return [...all].filter((file) => !/(^|\/)(node_modules|dist|reports)\//.test(file)).sort();
}

/** Those that one of these stages is to run. */
export function filesOf(stages: readonly Stage[], testFiles: readonly string[]): string[] {
  return testFiles.filter((file) => stages.some(({ folders }) => isUnder(file, folders ?? [])));
}
