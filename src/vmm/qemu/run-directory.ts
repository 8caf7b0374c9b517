/**
 * The files of the VMs: all that is known about them, so that nothing is lost with our process.
 *
 *   <root>/vms/<sandbox>/lock     held for the whole life of a VM's processes
 *   <root>/vms/<sandbox>/final    the newest run that may never start again
 *   <root>/vms/<sandbox>/<run>/   owner, vm, ready, end; guest, qmp; log, console
 *
 * Never names a path outside its root.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { assert } from "../../core/assert.ts";
import { Fault } from "../../core/fault.ts";
import { isId } from "../../core/ids.ts";
import { KiB } from "../../core/units.ts";
import { ifThere, isErrno, noRoom, readIfThere, writeWhole } from "../../system/files.ts";
import type { ProcessIdentity } from "../launch/identity.ts";
import type { VmRef } from "../vmm.ts";
import { sockets } from "./argv.ts";
import { type EndFacts, type EndRecord, parseEndRecord } from "./ends.ts";

export const consoleBytesMax = 64 * KiB;
/** unix(7): the longest path of a socket. */
const socketPathMax = 107;
const longestTail = "/vms/sb_00000000000000000000000000/1000000/guest";

/** The processes of a run, as its keeper recorded them. */
export interface Started {
  readonly bootId: string;
  readonly processes: readonly ProcessIdentity[];
}

export class RunDirectories {
  readonly #root: string;
  readonly #installation: string;

  /** @throws Fault `invalid` the root's path is too long for sockets below it. */
  constructor(root: string, installation: string) {
    if (Buffer.byteLength(root) + longestTail.length > socketPathMax)
      throw new Fault("invalid", `the run directory's path is too long: ${root}`, {
        code: "run_root_too_long",
        hint: `at most ${socketPathMax - longestTail.length} bytes`,
      });
    this.#root = root;
    this.#installation = installation;
  }

  sandboxPath(sandbox: string): string {
    assert(isId("sandbox", sandbox), `"${sandbox}" is not a sandbox's id`);
    return join(this.#root, "vms", sandbox);
  }

  path({ sandbox, run }: VmRef): string {
    assert(Number.isSafeInteger(run) && run > 0, `${run} is not the number of a run`);
    return join(this.sandboxPath(sandbox), String(run));
  }

  lockPath(sandbox: string): string {
    return join(this.sandboxPath(sandbox), "lock");
  }

  socketPath(ref: VmRef, which: keyof typeof sockets): string {
    return join(this.path(ref), sockets[which]);
  }

  /** May be called twice. @throws Fault `full` no room. */
  prepare(ref: VmRef): void {
    roomy(`preparing run ${ref.run} of ${ref.sandbox}`, () => {
      mkdirSync(this.path(ref), { recursive: true, mode: 0o700 });
      writeWhole(join(this.path(ref), "owner"), `${this.#installation}\n`);
    });
  }

  isOurs(ref: VmRef): boolean {
    return readIfThere(join(this.path(ref), "owner"))?.trim() === this.#installation;
  }

  /** 0 when every run may start. */
  finalRun(sandbox: string): number {
    return Number(readIfThere(join(this.sandboxPath(sandbox), "final")) ?? 0);
  }

  /** From its return on no keeper starts this run or an earlier one. @throws Fault `full`. */
  makeFinal({ sandbox, run }: VmRef): void {
    if (this.finalRun(sandbox) >= run) return;
    roomy(`ending ${sandbox}`, () => {
      mkdirSync(this.sandboxPath(sandbox), { recursive: true, mode: 0o700 });
      writeWhole(join(this.sandboxPath(sandbox), "final"), `${run}\n`);
    });
  }

  started(ref: VmRef): Started | undefined {
    const text = readIfThere(join(this.path(ref), "vm"));
    const match = /^([0-9a-f-]{36})((?: \d+)+)$/m.exec(text ?? "");
    if (!match) return undefined;
    const numbers = (match[2] ?? "").trim().split(" ").map(Number);
    const processes: ProcessIdentity[] = [];
    for (let at = 0; at + 1 < numbers.length; at += 2)
      processes.push({ pid: numbers[at] ?? 0, startTicks: numbers[at + 1] ?? 0 });
    return { bootId: match[1] ?? "", processes };
  }

  end(ref: VmRef): EndRecord | undefined {
    return parseEndRecord(readIfThere(join(this.path(ref), "end")) ?? "");
  }

  /** For a run whose keeper can no longer do it. */
  writeLost(ref: VmRef, why: string): EndRecord {
    const killed = this.finalRun(ref.sandbox) >= ref.run;
    writeWhole(join(this.path(ref), "end"), `lost ${killed ? "yes" : "no"} ${why}\n`);
    return { kind: "lost", killed, why };
  }

  endFacts(ref: VmRef, record: EndRecord): EndFacts {
    return {
      record,
      log: decode(this.#newest(ref, "log")),
      serial: decode(this.#newest(ref, "console")),
      wasReady: this.isReady(ref),
    };
  }

  /** Its QEMU was seen to run. */
  isReady(ref: VmRef): boolean {
    return existsSync(join(this.path(ref), "ready"));
  }

  markReady(ref: VmRef): void {
    ifThere(() => writeFileSync(join(this.path(ref), "ready"), ""));
  }

  console(ref: VmRef): Uint8Array {
    return this.#newest(ref, "console");
  }

  remove(ref: VmRef): void {
    rmSync(this.path(ref), { recursive: true, force: true });
  }

  runsOf(sandbox: string): VmRef[] {
    return namesIn(this.sandboxPath(sandbox))
      .filter((name) => /^[1-9]\d{0,9}$/.test(name))
      .map((name) => ({ sandbox, run: Number(name) }))
      .filter((ref) => this.isOurs(ref));
  }

  list(): VmRef[] {
    return namesIn(join(this.#root, "vms"))
      .filter((name) => isId("sandbox", name))
      .flatMap((sandbox) => this.runsOf(sandbox));
  }

  #newest(ref: VmRef, stream: "log" | "console"): Uint8Array {
    const [old, present] = [`${stream}.old`, stream].map((name) =>
      ifThere(() => readFileSync(join(this.path(ref), name))),
    );
    return new Uint8Array(
      Buffer.concat([old ?? empty, present ?? empty]).subarray(-consoleBytesMax),
    );
  }
}

const empty = Buffer.alloc(0);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const namesIn = (path: string): string[] => ifThere(() => readdirSync(path)) ?? [];

function roomy(what: string, write: () => void): void {
  try {
    write();
  } catch (cause) {
    if (!isErrno(cause, ...noRoom)) throw cause;
    throw new Fault("full", `${what}: no room for its run directory`, { code: "run_full", cause });
  }
}
