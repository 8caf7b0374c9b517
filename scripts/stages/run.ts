/**
 * Runs stages: each in a process group of its own, which never outlives it, with its output in
 * reports/<name>.log from the first byte on.
 */
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Stage } from "../stages.ts";

export interface StageRun {
  /** 128 + the signal's number where a signal ended it. */
  readonly exitCode: number;
  readonly isOverTime: boolean;
  readonly seconds: number;
  /** The end of what it wrote. */
  readonly tail: string;
}

const tailLines = 80;
const showEveryMs = 1_000;

/** Ends what runs, for when we are ended ourselves. */
export class Stages {
  readonly #root: string;
  readonly #pids = new Set<number>();

  constructor(root: string) {
    this.#root = root;
  }

  async run(stage: Stage): Promise<StageRun> {
    mkdirSync(join(this.#root, "reports"), { recursive: true });
    if (stage.report) rmSync(join(this.#root, stage.report), { force: true });
    const log = join(this.#root, "reports", `${stage.name}.log`);
    const file = openSync(log, "w");
    const began = performance.now();
    const hideFrom = stage.isShown ? showGrowth(log) : () => {};
    const end = await this.#attempt(stage, file);
    if (end.isOverTime) writeSync(file, `\nover its time limit of ${stage.timeoutMs / 1000} s\n`);
    closeSync(file);
    hideFrom();
    const tail = readFileSync(log, "utf8").trimEnd().split("\n").slice(-tailLines).join("\n");
    return { ...end, seconds: (performance.now() - began) / 1000, tail };
  }

  /** Whatever still runs, dies. */
  endAll(): void {
    for (const pid of this.#pids) endGroup(pid);
  }

  async #attempt(stage: Stage, file: number): Promise<{ exitCode: number; isOverTime: boolean }> {
    let isOverTime = false;
    try {
      const child = Bun.spawn([...stage.argv], {
        cwd: this.#root,
        stdio: ["ignore", file, file],
        detached: true,
      });
      this.#pids.add(child.pid);
      const timer = setTimeout(() => {
        isOverTime = true;
        endGroup(child.pid);
      }, stage.timeoutMs);
      const exitCode = await child.exited;
      clearTimeout(timer);
      // What it left running in its group would disturb the next one.
      endGroup(child.pid);
      this.#pids.delete(child.pid);
      return { exitCode, isOverTime };
    } catch (error) {
      writeSync(file, `could not be started: ${error}\n`);
      return { exitCode: 127, isOverTime };
    }
  }
}

/** Prints what is added to a file until the function it returns is called. */
function showGrowth(path: string): () => void {
  let shown = 0;
  const show = (): void => {
    const bytes = readFileSync(path);
    process.stdout.write(bytes.subarray(shown));
    shown = bytes.length;
  };
  const timer = setInterval(show, showEveryMs);
  return () => {
    clearInterval(timer);
    show();
  };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // No such group: all of it ended by itself.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** Takes the stages in order, `lanes` at a time. A `use` that answers "stop" lets no other begin. */
export async function inLanes(
  stages: readonly Stage[],
  lanes: number,
  use: (stage: Stage) => Promise<"go on" | "stop">,
): Promise<void> {
  const waiting = [...stages];
  const lane = async (): Promise<void> => {
    for (let stage = waiting.shift(); stage; stage = waiting.shift())
      if ((await use(stage)) === "stop") waiting.length = 0;
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
