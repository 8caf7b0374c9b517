/**
 * VMs on QEMU. Everything it knows is in the run directories and in /proc, so a new object goes on
 * where an old one ended. Never ends a process that it cannot prove to be this installation's.
 */
import { accessSync, constants, statSync } from "node:fs";
import { z } from "zod";
import { Fault } from "../../core/fault.ts";
import { secondMs } from "../../core/units.ts";
import type { Clock } from "../../system/clock.ts";
import { ifThere, isErrno } from "../../system/files.ts";
import type { Log } from "../../system/log.ts";
import type { LockProbe } from "../../system/process.ts";
import { endProcess, findByArgument, isAlive, type ProcessIdentity } from "../launch/identity.ts";
import type { Launcher } from "../launch/launcher.ts";
import type { Vmm, VmmDescription, VmRef, VmSight, VmSpec } from "../vmm.ts";
import { ownerName, ownerPrefix, type QemuMachine, qemuArgv } from "./argv.ts";
import { endOf } from "./ends.ts";
import { askQemu } from "./qmp.ts";
import type { RunDirectories } from "./run-directory.ts";

const pollMs = 20;
const readyMs = 60 * secondMs;
/** Until then the keeper may still write down what it saw. */
const gentleMs = 3 * secondMs;
const goneMs = 20 * secondMs;
/** A write that fails again fails within milliseconds. */
const settleMs = 200;

/** StatusInfo in the QEMU QMP Reference Manual. */
const statusSchema = z.object({ status: z.string() });

export interface QemuParts {
  readonly runs: RunDirectories;
  readonly locks: LockProbe;
  readonly launcher: Launcher;
  readonly machine: QemuMachine;
  readonly description: VmmDescription;
  /** The script of the keeper. */
  readonly keeperPath: string;
  readonly hostBootId: string;
  readonly clock: Clock;
  readonly log: Log;
}

export class QemuVmm implements Vmm {
  readonly #parts: QemuParts;
  readonly #runs: RunDirectories;
  readonly #booting = new Map<string, Promise<void>>();

  constructor(parts: QemuParts) {
    this.#parts = parts;
    this.#runs = parts.runs;
  }

  async describe(): Promise<VmmDescription> {
    return this.#parts.description;
  }

  /** Where `SocketGuests` finds this VM's port. */
  guestPathOf(ref: VmRef): string {
    return this.#runs.socketPath(ref, "guest");
  }

  /** Boots of one run share one attempt. */
  async boot(spec: VmSpec): Promise<void> {
    const key = nameOf(spec.ref);
    const running = this.#booting.get(key);
    if (running) return running;
    const attempt = this.#boot(spec).finally(() => this.#booting.delete(key));
    this.#booting.set(key, attempt);
    return attempt;
  }

  async #boot(spec: VmSpec): Promise<void> {
    const { ref } = spec;
    if (this.#isFinal(ref)) return;
    const { state } = await this.look(ref);
    // Started by a process that was gone before it knew.
    const isNews = this.#runs.started(ref) !== undefined && !this.#runs.isReady(ref);
    if (state === "alive" && isNews) return this.#established(ref);
    if (state !== "absent") return;
    refuseBadFiles(spec);
    this.#runs.prepare(ref);
    const { keeperPath, launcher, machine } = this.#parts;
    const keeper = ["/bin/sh", keeperPath, this.#runs.sandboxPath(ref.sandbox), String(ref.run)];
    await launcher.launch({ name: nameOf(ref), argv: [...keeper, ...qemuArgv(spec, machine)] });
    await this.#established(ref);
  }

  /** Runs, has ended, or may not start. */
  async #established(ref: VmRef): Promise<void> {
    const { clock } = this.#parts;
    const endAt = clock.monotonic() + readyMs;
    while (clock.monotonic() < endAt) {
      const { state } = await this.look(ref);
      if (state === "ended" || (state === "absent" && this.#isFinal(ref))) return;
      if (state === "alive" && (await this.#answers(ref))) return this.#runs.markReady(ref);
      await clock.sleep(pollMs);
    }
    throw new Fault("unavailable", `the VM of ${ref.sandbox} was started and gives no sign`, {
      code: "vm_not_established",
    });
  }

  async #answers(ref: VmRef): Promise<boolean> {
    try {
      await this.#ask(ref, "query-status");
      return true;
    } catch (error) {
      if (error instanceof Fault && error.kind === "unavailable") return false;
      throw error;
    }
  }

  async look(ref: VmRef): Promise<VmSight> {
    const record = this.#runs.end(ref);
    if (record) return { state: "ended", ...endOf(this.#runs.endFacts(ref, record)) };
    // Read once: its keeper may write it between two looks.
    const started = this.#runs.started(ref);
    if (this.#alive(ref, started).length > 0) return { state: "alive" };
    if (!started) return { state: "absent" };
    const isThisBoot = started.bootId === this.#parts.hostBootId;
    const why = isThisBoot ? "its processes are gone" : "the machine restarted";
    // Its last act was to write the end, perhaps since we looked.
    const lost = this.#runs.end(ref) ?? this.#runs.writeLost(ref, why);
    return { state: "ended", ...endOf(this.#runs.endFacts(ref, lost)) };
  }

  async resume(ref: VmRef): Promise<"runs" | "halted"> {
    if (!(await this.#isHalted(ref))) return "runs";
    await this.#ask(ref, "cont");
    // What it could not write it tries at once.
    await this.#parts.clock.sleep(settleMs);
    return (await this.#isHalted(ref)) ? "halted" : "runs";
  }

  /** QEMU halts a VM whose disk image has no room to grow (`werror=enospc`, its default). */
  async #isHalted(ref: VmRef): Promise<boolean> {
    const { success, data } = statusSchema.safeParse(await this.#ask(ref, "query-status"));
    if (!success) throw new Fault("unavailable", "QEMU tells no status", { code: "qmp_refused" });
    return data.status === "io-error";
  }

  async powerOff(ref: VmRef): Promise<void> {
    if ((await this.look(ref)).state === "alive") await this.#ask(ref, "system_powerdown");
  }

  async kill(ref: VmRef): Promise<void> {
    this.#runs.makeFinal(ref);
    const { clock, launcher } = this.#parts;
    const beganAt = clock.monotonic();
    while (!this.#isGone(ref)) {
      const forMs = clock.monotonic() - beganAt;
      if (forMs > goneMs)
        throw new Fault("unavailable", `the VM of ${ref.sandbox} does not end`, {
          code: "vm_does_not_end",
        });
      for (const each of this.#alive(ref)) if (!this.#isKeeper(ref, each)) endProcess(each);
      if (forMs > gentleMs) await this.#endHard(ref);
      await clock.sleep(pollMs);
    }
    await this.look(ref);
    await launcher.forget(nameOf(ref));
  }

  async #endHard(ref: VmRef): Promise<void> {
    for (const each of this.#alive(ref)) endProcess(each);
    await this.#parts.launcher.end(nameOf(ref));
  }

  async forget(ref: VmRef): Promise<void> {
    if ((await this.look(ref)).state === "alive") return;
    this.#runs.remove(ref);
    await this.#parts.launcher.forget(nameOf(ref));
  }

  async list(): Promise<VmRef[]> {
    const refs = [...this.#runs.list(), ...this.#strays()];
    return [...new Map(refs.map((ref) => [nameOf(ref), ref])).values()];
  }

  async console(ref: VmRef): Promise<Uint8Array> {
    return this.#runs.console(ref);
  }

  #ask(ref: VmRef, command: string): Promise<unknown> {
    return askQemu(this.#runs.socketPath(ref, "qmp"), command, this.#parts.clock);
  }

  #isFinal(ref: VmRef): boolean {
    return this.#runs.finalRun(ref.sandbox) >= ref.run;
  }

  /** No process of this run is left, and the lock is free or a later run's. */
  #isGone(ref: VmRef): boolean {
    if (this.#alive(ref).length > 0) return false;
    if (!this.#parts.locks.isHeld(this.#runs.lockPath(ref.sandbox))) return true;
    return this.#runs
      .runsOf(ref.sandbox)
      .some((other) => other.run !== ref.run && this.#alive(other).length > 0);
  }

  /** The processes of this run, keeper and QEMU, by the keeper's record or else by command line. */
  #alive(ref: VmRef, started = this.#runs.started(ref)): ProcessIdentity[] {
    if (started)
      return started.bootId === this.#parts.hostBootId ? started.processes.filter(isAlive) : [];
    const name = ownerName(this.#parts.machine.installation, ref);
    return findByArgument(name)
      .filter(({ argv }) => argv[0] === this.#parts.machine.program && argv.includes(name))
      .map(({ identity }) => identity);
  }

  #isKeeper(ref: VmRef, { pid }: ProcessIdentity): boolean {
    return this.#runs.started(ref)?.processes[0]?.pid === pid;
  }

  /** VMs that run though somebody removed their run directory. */
  #strays(): VmRef[] {
    const prefix = ownerPrefix(this.#parts.machine.installation);
    return findByArgument(prefix)
      .filter(({ argv }) => argv[0] === this.#parts.machine.program)
      .flatMap(({ argv }) => {
        const name = argv.find((each) => each.startsWith(prefix))?.slice(prefix.length) ?? "";
        const match = /^(sb_[0-9a-z]{26}):([1-9]\d*)$/.exec(name);
        return match ? [{ sandbox: match[1] ?? "", run: Number(match[2]) }] : [];
      });
  }
}

/** A unit's name, too. */
const nameOf = ({ sandbox, run }: VmRef): string => `${sandbox}-${run}`;

function refuseBadFiles({ diskPath, boot }: VmSpec): void {
  const files = {
    disk: diskPath,
    kernel: boot.kernelPath,
    initramfs: boot.initramfsPath,
    "tools disk": boot.toolsPath,
  };
  for (const [what, path] of Object.entries(files)) {
    if (isReadable(path)) continue;
    throw new Fault("broken", `the ${what} cannot be read: ${path}`, { code: "boot_file_broken" });
  }
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    const stat = ifThere(() => statSync(path));
    return stat !== undefined && (stat.isFile() || stat.isBlockDevice()) && path.startsWith("/");
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES", "ELOOP", "ENAMETOOLONG")) return false;
    throw error;
  }
}
